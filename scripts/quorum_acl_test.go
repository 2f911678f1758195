package scripts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// quorumUser makes a user with the least rights for the nodes of a quorum, less the
// commands left out, and returns a node that works as that user.
func quorumUser(t *testing.T, s *redistest.Server, name string, without ...string) *Node {
	t.Helper()
	rule := []string{"ACL", "SETUSER", name, "reset", "on", ">secret", "~k", "~redisson_lock_token:*", "~holdfast_gone:*",
		"~" + marker, "resetchannels", "&redisson_lock__channel:*", "-@all", "+hello", "+ping"}
	for _, c := range QuorumCommands() {
		if !slices.Contains(without, c) {
			rule = append(rule, "+"+c)
		}
	}
	s.Do(t, rule...)
	return NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = name, "secret" }))
}

// nodeVerbs is all that a quorum asks of a node.
func nodeVerbs() map[string]func(ctx context.Context, n *Node, vote *Vote, key, owner string) error {
	all := maps.Clone(quorumVerbs)
	for _, name := range []string{"recount", "force_release", "inspect"} {
		all[name] = func(ctx context.Context, n *Node, _ *Vote, key, owner string) error {
			return verbs[name](ctx, n, key, owner)
		}
	}
	all["run id"] = func(ctx context.Context, n *Node, _ *Vote, _, _ string) error {
		_, err := n.runID(ctx)
		return err
	}
	all["check"] = func(ctx context.Context, n *Node, _ *Vote, _, _ string) error {
		_, _, err := n.CheckNode(ctx, Mark, newEpoch(), ofThree(longest), "")
		return err
	}
	return all
}

func TestF32_QuorumLeastRightsSuffice(t *testing.T) {
	s, _, vote := startActive(t)
	n := quorumUser(t, s, "least")
	for name, verb := range nodeVerbs() {
		require.NoError(t, verb(bounded(t), n, vote, "k", ownA), name)
		s.Do(t, "DEL", "k", counter("k"), tombstone("k", ownA))
	}
	s.Do(t, "DEL", marker)
	activated(t, n)
}

// Each command is taken away in turn. A verb that still ends well has done its
// work; one that fails says why and leaves everything as it was.
func TestF32_QuorumEachCommandRefused(t *testing.T) {
	s, admin, vote := startActive(t)
	// Refusals that a verb rides out, by design.
	tolerated := map[string]string{
		"get": "release fenced", "set": "release fenced clean_up undo in doubt", "hset": "renew",
		"publish": "release release fenced clean_up force_release",
	}
	all := nodeVerbs()
	refused := map[string]int{}
	for _, command := range QuorumCommands() {
		n := quorumUser(t, s, "without-"+command, command)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, found := range []string{"free", "held", "held by another", "not checked"} {
				s.Do(t, "FLUSHALL")
				s.Do(t, "SET", marker, vote.marker)
				switch found {
				case "held":
					_, err := admin.AcquireFenced(bounded(t), "k", ownA, lease, Fencing{Reserve: 10, Expiry: lease})
					require.NoError(t, err)
				case "held by another":
					acquired(t, admin, "k", ownB)
				case "not checked":
					s.Do(t, "DEL", marker)
				}
				if command == "eval" { // needed only where the script is unknown
					s.Do(t, "SCRIPT", "FLUSH")
					_, _ = checked(t, admin, Mark)
				}
				before := state(t, s)
				err := all[name](bounded(t), n, vote, "k", ownA)
				requireExpiriesBesidesMarker(t, s)
				if err == nil {
					continue
				}
				refused[command]++
				require.Equal(t, Refused, OutcomeOf(err), "%s without %s: %v", name, command, err)
				require.NotContains(t, tolerated[command], name)
				after := state(t, s)
				if strings.HasSuffix(name, "fenced") { // it may have skipped numbers
					delete(before, counter("k"))
					delete(after, counter("k"))
				}
				require.Equal(t, before, after, "%s without %s", name, command)
			}
		}
	}
	for _, command := range QuorumCommands() {
		require.Equal(t, command != "publish", refused[command] > 0, command)
	}
}

// requireExpiriesBesidesMarker fails if a key of ours would stay for ever.
func requireExpiriesBesidesMarker(t *testing.T, s *redistest.Server) {
	t.Helper()
	for name, value := range state(t, s) {
		require.Equal(t, name == marker, strings.Contains(value, "|1969-12-31") || strings.Contains(value, "|1970-01-01"), name)
	}
}

func TestF32_QuorumForeignKeys(t *testing.T) {
	s, _, vote := startActive(t)
	n := quorumUser(t, s, "least")
	before := state(t, s)
	for name, verb := range quorumVerbs {
		err := verb(bounded(t), n, vote, "other", ownA)
		require.ErrorContains(t, err, "NOPERM", name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
	require.Equal(t, before, state(t, s))
}

func TestF33_QuorumWrongType(t *testing.T) {
	s, n, vote := startActive(t)
	for _, foreign := range [][]string{
		{"SET", "k", "x"}, {"LPUSH", "k", "x"}, {"SADD", "k", "x"}, {"ZADD", "k", "1", "x"}, {"XADD", "k", "*", "f", "v"},
	} {
		s.Do(t, foreign...)
		before := state(t, s)
		for name, verb := range quorumVerbs {
			err := verb(bounded(t), n, vote, "k", ownA)
			if name == "renew" { // the lock was replaced: an answer, no error
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "WRONGTYPE", name)
			require.Equal(t, Refused, OutcomeOf(err), name)
		}
		require.Equal(t, before, state(t, s))
		s.Do(t, "DEL", "k")
	}

	s.Do(t, "DEL", marker)
	s.Do(t, "LPUSH", marker, "x")
	before := state(t, s)
	for _, name := range []string{"voted", "voted fenced", "renew"} {
		err := quorumVerbs[name](bounded(t), n, vote, "k", ownA)
		require.ErrorContains(t, err, "WRONGTYPE", name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
	require.Equal(t, before, state(t, s))
}
