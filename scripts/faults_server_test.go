package scripts

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// writing are the verbs that change something when ownA holds the key, and so
// meet what a server refuses to write.
var writing = []string{"acquire", "acquire_fenced", "recount", "renew", "release", "release fenced", "clean_up", "force_release"}

// requireRefused runs each verb for a holder, and an acquire of a free key, and
// requires that all fail with the outcome and that code,
// and that nothing is changed.
func requireRefused(t *testing.T, s *redistest.Server, n *Node, want Outcome, code string, names []string) {
	t.Helper()
	before := state(t, s)
	for _, name := range names {
		key := "k"
		if strings.HasPrefix(name, "acquire") {
			key = "free" // an acquire that finds its own hold writes nothing
		}
		err := verbs[name](bounded(t), n, key, ownA)
		require.Error(t, err, name)
		require.Equal(t, want, OutcomeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, code, name)
	}
	require.Equal(t, before, state(t, s))
}

func TestF23_ScriptFlush(t *testing.T) {
	s, n := start(t)
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		s.Do(t, "SCRIPT", "FLUSH")
		require.NoError(t, verbs[name](bounded(t), n, "k", ownA), name)
	}
}

func TestF27_ReadOnly(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "REPLICAOF", "127.0.0.1", "1") // nobody listens there
	requireRefused(t, s, n, Unavailable, "READONLY", writing)
	_, err := n.Inspect(bounded(t), "k")
	require.NoError(t, err)
}

func TestF27_MasterDown(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "CONFIG", "SET", "replica-serve-stale-data", "no")
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	for name, verb := range verbs {
		err := verb(bounded(t), n, "k", ownA)
		require.ErrorContains(t, err, "MASTERDOWN", name)
		require.Equal(t, Unavailable, OutcomeOf(err), name)
	}
}

func TestF27_NoReplicas(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	requireRefused(t, s, n, Unavailable, "NOREPLICAS", writing)
}

func TestF27_Misconf(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700)) // no snapshot can be put there
	s.Do(t, "BGSAVE")
	until(t, func() bool {
		info := s.Do(t, "INFO", "persistence")
		text, err := info.ToString()
		return err == nil && strings.Contains(text, "rdb_last_bgsave_status:err")
	})
	requireRefused(t, s, n, Unavailable, "MISCONF", writing)
}

func TestF28_Loading(t *testing.T) {
	s, n := start(t, "--key-load-delay", "100", "--appendonly", "yes")
	s.Do(t, "EVAL", "for i = 1, 5000 do redis.call('SET', 'k' .. i, 'v') end", "0")
	s.Restart() // loads for 0.5 s or more, and answers after each 1000 keys
	var loading int
	until(t, func() bool {
		_, err := n.Acquire(bounded(t), "k", ownA, lease)
		if err != nil && strings.HasPrefix(err.Error(), "LOADING") {
			require.Equal(t, Unavailable, OutcomeOf(err))
			loading++
		}
		return err == nil
	})
	require.Positive(t, loading)
}

func TestF29_Busy(t *testing.T) {
	s, n := start(t, "--busy-reply-threshold", "20")
	acquired(t, n, "k", ownA)
	other := s.Client(t)
	ended := make(chan error, 1)
	go func() {
		ended <- other.Do(context.Background(), other.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	for name, verb := range verbs {
		for { // an answer comes only when the script has run for a while
			if err := verb(bounded(t), n, "k", ownA); err != nil {
				require.ErrorContains(t, err, "BUSY", name)
				require.Equal(t, Unavailable, OutcomeOf(err), name)
				break
			}
		}
	}
	s.Do(t, "SCRIPT", "KILL")
	require.Error(t, <-ended)
}

func TestF30_OutOfMemory(t *testing.T) {
	s, n := start(t)
	ctx := bounded(t)
	hold := func() {
		s.Do(t, "CONFIG", "SET", "maxmemory", "0")
		a, err := n.AcquireFenced(ctx, "k", ownA, lease, Fencing{Reserve: 10, Expiry: time.Hour})
		require.NoError(t, err)
		require.True(t, a.OK)
		s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	}
	hold()
	requireRefused(t, s, n, Unavailable, "OOM", []string{"acquire", "acquire_fenced", "recount"})

	answers := make([]Answer, 1)
	require.NoError(t, n.Renew(ctx, time.Minute, []string{"k"}, []string{ownA}, answers))
	require.Equal(t, []Answer{Renewed}, answers)
	h, err := n.Inspect(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, ownA, h.Owner)

	for _, lastFence := range []int64{0, 1} {
		r, err := n.Release(ctx, "k", ownA, lastFence)
		require.NoError(t, err)
		require.True(t, r.Ours)
		require.EqualValues(t, 0, integerOf(t, s.Do(t, "EXISTS", "k")))
		hold()
	}
	existed, err := n.ForceRelease(ctx, "k")
	require.NoError(t, err)
	require.True(t, existed)

	// An owner that holds nothing gets its tombstone all the same.
	r, err := n.CleanUp(ctx, "k", ownB)
	require.NoError(t, err)
	require.False(t, r.Ours)
	require.EqualValues(t, 1, integerOf(t, s.Do(t, "EXISTS", tombstone("k", ownB))))
}

func TestF33_WrongType(t *testing.T) {
	s, n := start(t)
	for _, foreign := range [][]string{
		{"SET", "k", "x"}, {"LPUSH", "k", "x"}, {"SADD", "k", "x"}, {"ZADD", "k", "1", "x"}, {"XADD", "k", "*", "f", "v"},
	} {
		s.Do(t, foreign...)
		before := state(t, s)
		for name, verb := range verbs {
			err := verb(bounded(t), n, "k", ownA)
			if name == "renew" { // the lock was replaced: an answer, no error
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "WRONGTYPE", name)
			require.Equal(t, Refused, OutcomeOf(err), name)
			require.True(t, Replied(err), name)
		}
		require.Equal(t, before, state(t, s))
		s.Do(t, "DEL", "k")
	}

	s.Do(t, "LPUSH", counter("k"), "x")
	before := state(t, s)
	err := verbs["acquire_fenced"](bounded(t), n, "k", ownA)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Equal(t, before, state(t, s))
}
