package locktest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// LeastUser is the name of the user with the least rights; see [Kind.LeastRights].
const LeastUser = "least"

// AsLeast logs in as that user.
func AsLeast(o *rueidis.ClientOption) { o.Username, o.Password = LeastUser, Password }

// anyKey are patterns of the names of locks of any case, but not of our other names.
var anyKey = []string{"~[^rh]*", "~r[^e]*", "~re[^d]*", "~h[^o]*"}

// LeastRights makes the user with the rights that docs/acl.md gives for k, for locks of any
// name, but for those left out.
func (k Kind) LeastRights(t testing.TB, s Topology, without ...string) {
	t.Helper()
	if k.network != nil {
		return // there are no users
	}
	rule := []string{"ACL", "SETUSER", LeastUser, ">" + Password}
	for _, word := range k.Rights(t) {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			name, _, _ := strings.Cut(command, "|")
			if known, err := s.Do(t, "COMMAND", "INFO", name).ToArray(); err == nil && known[0].IsNil() {
				continue // Redis has no such right
			}
		}
		if !slices.Contains(without, word) {
			rule = append(rule, word)
		}
	}
	for _, one := range s {
		for _, node := range append(Real(one).Peers(), Real(one)) {
			node.Do(t, rule...)
		}
	}
}

// Rights are the words for ACL SETUSER that docs/acl.md gives for k, after name and password,
// with the patterns of anyKey.
func (k Kind) Rights(t testing.TB) (words []string) {
	t.Helper()
	lines := []string{"ACL SETUSER "}
	if k.Fair {
		lines = append(lines, "~holdfast_heartbeat:")
	}
	if k.Permits {
		lines = append(lines, "~holdfast_permits:")
	}
	if k.ReadWrite {
		lines = append(lines, "~{sku:")
	}
	if k.Nodes > 0 {
		lines = append(lines, "~holdfast_node ")
	}
	if k.Sentinels != nil {
		lines = append(lines, "+role")
	}
	if k.Cluster {
		lines = append(lines, "~redisson_lock__channel:*")
	}
	lines = append(lines, "+scan")
	for _, begin := range lines {
		words = append(words, ACLLine(t, begin)...)
	}
	for _, needless := range []string{"ACL", "SETUSER", "shop", ">secret", "~sku:*"} {
		at := slices.Index(words, needless)
		require.GreaterOrEqual(t, at, 0, needless)
		words = slices.Delete(words, at, at+1)
	}
	return append(append(words, anyKey...), "+info") // the suite has a logger
}

// ACLLine is the words of the line of docs/acl.md that begins so.
func ACLLine(t testing.TB, begin string) []string {
	t.Helper()
	page := "docs/acl.md"
	for range 3 {
		text, err := os.ReadFile(page)
		if err != nil {
			page = filepath.Join("..", page)
			continue
		}
		line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(begin) + ".*$").FindString(string(text))
		require.NotEmpty(t, line, begin)
		return strings.Fields(line)
	}
	require.FailNow(t, "no docs/acl.md")
	return nil
}

// StartWithLeastRights is Start; the clients of the topology log in with the least rights.
// The case fails if they are refused anything.
func (k Kind) StartWithLeastRights(t testing.TB) Topology {
	t.Helper()
	if k.network != nil {
		return k.Start(t)
	}
	file := filepath.Join(t.TempDir(), "users.acl") // of all nodes
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	s := k.Start(t, "--aclfile", file)
	k.LeastRights(t, s)
	s.Each(func(s Server) {
		one := Real(s)
		one.Do(t, "ACL", "SAVE") // it may be started anew
		one.LogIn(AsLeast)
		t.Cleanup(func() { RefusedNothing(t, one, LeastUser) })
	})
	return s
}

// RefusedNothing requires that a server has refused nothing to a user, even where a refusal
// only slows down a wake-up.
func RefusedNothing(t testing.TB, s *redistest.Server, user string) {
	t.Helper()
	m, err := s.TryDo("ACL", "LOG", "1000")
	if err != nil {
		return // it does not run
	}
	refused := Must(m.ToArray())(t)
	for _, one := range refused {
		entry := Must(one.AsStrMap())(t)
		if entry["username"] == user {
			require.Contains(t, []string{ // rueidis tries these when it opens a connection, or takes it back
				"cluster|slots", "cluster|shards", "client|setinfo", "punsubscribe", "sunsubscribe", "discard",
				"cluster", "client", // before Redis 7
			}, entry["object"])
		}
	}
}
