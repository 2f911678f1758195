package main

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
	"github.com/holdfast-go/holdfast/scripts"
)

// aclUsers returns the words of docs/acl.md for an rlock, and those that a fair lock, a read/write
// lock and a Redis Cluster need besides.
func aclUsers(t *testing.T) (plain, fair, readWrite, cluster []string) {
	t.Helper()
	text := redistest.Must(os.ReadFile("../../docs/acl.md"))(t)
	line := func(begin string) []string {
		found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(begin) + ".*$").FindString(string(text))
		require.NotEmpty(t, found, begin)
		return strings.Fields(found)
	}
	return line("ACL SETUSER shop"), line("~holdfast_heartbeat:"), line("~{sku:"), line("~redisson_lock__channel:")
}

const ofDoctor = "+info +config|get +scan +wait"

// Each right that docs/acl.md names is missed if it is not there, and nothing else is.
func TestDoctorFindsMissingRights(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it does not tell rights")
	plain, fair, readWrite, cluster := aclUsers(t)
	words := slices.Concat(plain, strings.Fields(ofDoctor), fair, readWrite)
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, healthy...)
		missesEachRight(t, s, words, "")
		requireFree(t, s, "sku:42")
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, append(redistest.ClusterNode(t, "0-16383", ""), append(healthy, "--cluster-require-full-coverage", "no")...)...)
		s.AwaitClusterNode(t)
		s.Do(t, "CONFIG", "SET", "cluster-node-timeout", "5000")
		missesEachRight(t, s, append(words, cluster...), "?addr="+s.Addr())
	})
}

// asShop are the arguments for the user of docs/acl.md.
func asShop(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret"), 0o600))
	return []string{"--password-file", file, "--redis", "redis://shop@" + s.Addr()}
}

// missesEachRight takes each right from the user that words make.
func missesEachRight(t *testing.T, s *redistest.Server, words []string, query string) {
	t.Helper()
	args := asShop(t, s)
	args[len(args)-1] += query
	of := func(words []string) []finding {
		s.Do(t, "ACL", "DELUSER", "shop")
		s.Do(t, words...)
		return slices.DeleteFunc(finds(t, append(args, "--fair", "--read", "sku:42")...), func(f finding) bool { return f.Found == "it has no replica" })
	}
	require.Empty(t, of(words))
	for i, word := range words {
		if !strings.ContainsAny(word[:1], "+~&") || word == "+cluster|slots" || word == "+cluster|shards" { // the client may not connect
			continue
		}
		found := of(slices.Delete(slices.Clone(words), i, i+1))
		switch word {
		case "+info", "+config|get", "+time", "+eval":
			require.NotEmpty(t, found, word)
			require.Contains(t, found[0].Found, strings.TrimPrefix(word, "+"), word)
		default:
			require.Len(t, found, 1, "%s: %v", word, found)
			lacks := word
			switch word {
			case "~sku:*":
				lacks = "~sku:42"
			case "~{sku:*":
				lacks = "~{sku:42}:*"
			}
			said, _, _ := strings.Cut(found[0].Found, " or +")
			require.Equal(t, "the user lacks "+lacks, said)
			require.Equal(t, word != "+scan" && word != "+wait" && word != "~redisson_lock_token:*", found[0].Hurts, word)
		}
	}
}

// A user who may not call a single command still has his patterns: they are not named as missing.
func TestDoctorNamesNoPatternThatTheUserHas(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it does not tell rights")
	plain, _, _, _ := aclUsers(t)
	words := slices.DeleteFunc(plain, func(word string) bool {
		return strings.HasPrefix(word, "+") && !slices.Contains([]string{"+ping", "+eval", "+evalsha", "+time"}, word)
	})
	s := redistest.Start(t, healthy...)
	s.Do(t, append(words, strings.Fields(ofDoctor)...)...)
	found := finds(t, append(asShop(t, s), "sku:42")...)
	require.Contains(t, found[0].Found, "+hset")
	for _, f := range found {
		require.NotRegexp(t, "~(sku|holdfast_gone):", f.Found)
	}
}

func TestDoctorWithoutAKeyDoesNotJudgeRights(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it does not tell rights")
	plain, _, _, _ := aclUsers(t)
	s := redistest.Start(t, healthy...)
	s.Do(t, append(plain, strings.Fields(ofDoctor)...)...)
	requireFinds(t, finds(t, asShop(t, s)...), "the user may not do everything")
	requireFinds(t, finds(t, append(asShop(t, s), "sku:42")...), "the user lacks ~redisson_lock_queue:")
}

// Redis 7.0 panics if it is asked for rights with too few arguments.
func TestDoctorAsksForRightsWithAllArguments(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it does not know all commands")
	s := redistest.Start(t)
	asked := map[string]bool{}
	for _, mode := range []rueidis.ClientMode{rueidis.ClientModeStandalone, rueidis.ClientModeSentinel, rueidis.ClientModeCluster} {
		for _, n := range (&checkup{mode: mode, permits: true, read: true}).needs() {
			for _, a := range n.on {
				for _, command := range a.commands {
					asked[command] = true
				}
			}
		}
	}
	for _, command := range slices.Concat(scripts.FairCommands(), scripts.SemaphoreCommands(), scripts.RWLockCommands(), scripts.ClusterCommands()) {
		require.True(t, asked[command], command)
	}
	for command := range asked {
		about := redistest.Must(s.Do(t, "COMMAND", "INFO", command).ToArray())(t)
		info, err := about[0].ToArray()
		require.NoError(t, err, command)
		arity := redistest.Must(info[1].AsInt64())(t)
		n := int64(len(full(command, "name")))
		require.True(t, n == arity || arity < 0 && n >= -arity, "%s has %d words, not %d", command, arity, n)
	}
}
