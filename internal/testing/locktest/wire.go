package locktest

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Await is for what no event tells: it polls for a while, generously.
func Await(t testing.TB, what func() bool, why ...any) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Patience); !what(); time.Sleep(pause) {
		if time.Now().After(end) {
			require.FailNow(t, "it does not happen", why...)
		}
		pause = min(pause*5/4, 20*time.Millisecond)
	}
}

// MoreAtOnce lets twice as many parallel tests run at once as there are processors, unless
// -parallel sets the number: they spend their time waiting, but each has servers and
// clients that need a processor when its wait ends. TestMain calls it.
func MoreAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// Redis is a server, or a topology of them.
type Redis interface {
	Do(t testing.TB, args ...string) *rueidis.RedisMessage
}

// Number is the reply to a command of the administrator; on a topology, one that most
// servers give at least.
func Number(t testing.TB, s Redis, args ...string) int {
	t.Helper()
	var all []int
	for _, one := range servers(s) {
		n := Must(one.Do(t, args...).ToInt64())(t)
		all = append(all, int(n))
	}
	return SeenByMost(all)
}

// Text and Strings are the reply to a command of the administrator; on a topology, the first server's.
func Text(t testing.TB, s Redis, args ...string) string {
	t.Helper()
	return Must(s.Do(t, args...).ToString())(t)
}

func Strings(t testing.TB, s Redis, args ...string) []string {
	t.Helper()
	return Must(s.Do(t, args...).AsStrSlice())(t)
}

// Stat is the number that follows name in a section of INFO.
func Stat(t testing.TB, s Server, section, name string) (n int) {
	t.Helper()
	text := Text(t, s, "INFO", section)
	_, number, _ := strings.Cut(text, name)
	require.NoError(t, ErrOf(fmt.Sscan(number, &n)))
	return n
}

// SeenByMost is the largest number that most nodes have reached.
func SeenByMost(byNode []int) int {
	sorted := slices.Sorted(slices.Values(byNode))
	return sorted[(len(sorted)-1)/2]
}

// Exists reports whether the key is there, on one server of a topology at least.
func Exists(t testing.TB, s Redis, key string) bool {
	t.Helper()
	return slices.ContainsFunc(servers(s), func(s Server) bool { return Number(t, s, "EXISTS", key) == 1 })
}

// Gone waits until the key is nowhere: one node of several may be told after Unlock
// has returned.
func Gone(t testing.TB, s Redis, key string) {
	t.Helper()
	if len(servers(s)) == 1 {
		require.False(t, Exists(t, s, key), key)
		return
	}
	Await(t, func() bool { return !Exists(t, s, key) }, key)
}

// Give makes another owner hold the key, in one step: the repair of a quorum must not find
// it free in between.
func (k Kind) Give(t testing.TB, s Redis, key, owner, count string) {
	t.Helper()
	if k.Permits {
		s.Do(t, "EVAL", "redis.call('DEL', KEYS[1]) return redis.call('ZADD', KEYS[1], '9e15', ARGV[1])", "1", key, owner)
		return
	}
	const script = "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], unpack(ARGV))"
	fields := k.Fields(owner, count)
	if k.ReadWrite {
		s.Do(t, "SET", strings.TrimPrefix(OfKey("", key), ":")+":"+fields[2]+names.ReadHolds+":1", "1")
	}
	s.Do(t, append([]string{"EVAL", script, "1", key}, fields...)...)
}

// Grown requires that a fence is larger than an earlier one, of a kind that has fences.
func (k Kind) Grown(t testing.TB, before, after int64) {
	t.Helper()
	require.True(t, k.Permits && before == 0 && after == 0 || after > before, "%d after %d", after, before)
}

// Has reports whether an owner has the key, or is said to.
func (k Kind) Has(t testing.TB, s Redis, key, owner string) bool {
	t.Helper()
	if k.Permits {
		return slices.Contains(Strings(t, s, "ZRANGE", key, "0", "-1"), owner)
	}
	return Number(t, s, "HEXISTS", key, owner) == 1
}

// servers are those of a topology, or the one.
func servers(s Redis) []Server {
	if f, ok := s.(Topology); ok {
		return f
	}
	return []Server{s.(Server)}
}

// ModuleRoot is the folder of go.mod, found from that of the package under test.
func ModuleRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			panic("locktest: not inside the module")
		}
		dir = up
	}
}

// scriptNames gives each script's name by its text's SHA-1. Those that do the same
// for several locks, for the fair queue, for a quorum and for read/write locks
// have the names of the plain ones.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for name, text := range scripts.Scripts() {
		name, _, _ = strings.Cut(name, "/")
		name = strings.TrimPrefix(name, "semaphore_")
		switch name {
		case "release", "rwlock_release":
			name = "end"
		case "release_each", "rwlock_release_each":
			name = "end_counted"
		}
		name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "fair_"), "quorum_"), "rwlock_")
		name = strings.TrimSuffix(name, "_each")
		names[sha(text)] = strings.Replace(name, "leave", "give_up", 1)
	}
	return names
})

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Verb names a command as a proxy sees it: that of a script by the script's file
// (acquire, give_up, …), any other by its first word in lower case.
func Verb(cmd []string) string {
	word := strings.ToLower(cmd[0])
	switch word {
	case "evalsha":
		name, known := scriptNames()[cmd[1]]
		if !known && slices.Contains(cmd, "holdfast_node") {
			return "acquire" // its text names one boot of a node
		}
		word = name
	case "ssubscribe", "sunsubscribe":
		word = word[1:]
	case "eval":
		word = scriptNames()[sha(cmd[1])]
	}
	if word == "end" || word == "end_counted" {
		return endVerb(cmd, word == "end_counted")
	}
	return word
}

// endVerb says why a hold ends, of several the first. counted: the arguments begin with the number of keys of each.
func endVerb(cmd []string, counted bool) string {
	keys, err := strconv.Atoi(cmd[2])
	if err != nil {
		panic(err)
	}
	args := cmd[3+keys:]
	withMore := len(args) > 2
	if counted {
		withMore = args[0] != "1"
		args = args[1:]
	}
	channel, more := args[1], ""
	if withMore {
		more = args[2]
	}
	switch {
	case more == "tombstone":
		return "give_up"
	case channel == "":
		return "end_round"
	}
	return "release"
}

// Is matches a command by what verb calls it.
func Is(names ...string) func(cmd []string) bool {
	return func(cmd []string) bool { return slices.Contains(names, Verb(cmd)) }
}

// Holding is a hook that holds commands.
func Holding(names ...string) (hook redistest.Hook, held <-chan struct{}) {
	first := make(chan struct{})
	tell := sync.OnceFunc(func() { close(first) })
	return redistest.When(Is(names...), func() redistest.Verdict { tell(); return redistest.Hold }), first
}

// TellingContext tells when its end is first waited for, as a call does when it
// begins to wait.
type TellingContext struct {
	context.Context
	once    sync.Once
	Waiting chan struct{}
}

func (c *TellingContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.Waiting) })
	return c.Context.Done()
}

// ScriptCalls is how many scripts Redis was asked for since it was started or its
// statistics were reset: of several nodes, the least that a quorum was asked for, as
// one that is found back late has missed some.
func ScriptCalls(t *testing.T, s Topology) int {
	var all []int
	for _, one := range s {
		run, _ := redistest.Calls(Text(t, one, "INFO", "commandstats"))
		all = append(all, run["eval"]+run["evalsha"])
	}
	return SeenByMost(all)
}
