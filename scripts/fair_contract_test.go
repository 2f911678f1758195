package scripts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// everyFairReply brings about every reply of every fair script.
func everyFairReply(t *testing.T, client rueidis.Client, s *redistest.Server) {
	t.Helper()
	everyFairReplyBy(t, client, s, false)
	everyFairReplyBy(t, client, s, true)
}

// everyFairReplyBy uses the scripts for many locks where there are such, if each.
func everyFairReplyBy(t *testing.T, client rueidis.Client, s *redistest.Server, each bool) {
	t.Helper()
	ctx, f := bounded(t), NewFair(NewNode(client), settingsOf(clientA))
	call := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	again := func() { s.Do(t, "FLUSHALL"); s.Do(t, "SET", "string", "x") }
	java := func() { again(); s.Do(t, "RPUSH", queue("k"), ofJ(1)) }
	acquire := func(owner string) {
		if each {
			call(nil, f.AcquireEach(ctx, []Ask{{"k", owner, lease}, {"string", owner, lease}}, make([]Result[Acquired], 2)))
			return
		}
		call(f.Acquire(ctx, "k", owner, lease))
	}
	enter := func(owners ...string) { call(f.Enter(ctx, "k", owners...)) }
	release := func(owner string, doubt bool, served ...string) {
		if each && len(served) == 0 {
			call(nil, f.ReleaseEach(ctx, []FairHold{{Hold{"k", owner}, 0}, {Hold{"string", owner}, 0}}, make([]Result[Passed], 2)))
			return
		}
		call(f.Release(ctx, "k", owner, 0, doubt, served...))
	}
	leave := func(doubts int, owners ...string) {
		if each && len(owners) == 1 {
			call(nil, f.LeaveEach(ctx, []Hold{{"k", owners[0]}, {"string", owners[0]}}, make([]Result[Passed], 2)))
			return
		}
		call(f.Leave(ctx, "k", doubts, owners...))
	}
	inspect := func() {
		_, _, err := f.Inspect(ctx, "k")
		require.NoError(t, err)
	}

	again()
	inspect()
	acquire(ofA(1))
	inspect()
	acquire(ofA(2))
	s.Do(t, "PERSIST", "k")
	acquire(ofA(2))
	enter(ofA(3), ofA(4), ofA(1))
	call(f.Queue(ctx, "k"))
	leave(1, ofA(5), ofA(3))
	acquire(ofA(5))
	enter(ofA(5))
	leave(0, ofA(8))
	call(f.Confirm(ctx, "k", ofA(2), lease))
	call(f.Confirm(ctx, "k", ofA(1), lease))
	release(ofA(1), true) // ofA(4) is granted it
	release(ofA(1), false)
	release(ofA(1), false, ofA(7))
	enter(ofA(6))
	leave(0, ofA(4)) // ofA(6) is granted it
	release(ofA(6), false)

	java()
	acquire(ofA(1))
	s.Do(t, "HSET", "k", ofA(1), "1")
	release(ofA(1), false)
	leave(0, ofA(1))

	probed := make([]Probed, 3)
	asked := []Heartbeat{{Key: "k"}, {Key: "string"}, {Key: "free", Owners: []string{ofA(1)}, Distances: make([]time.Duration, 1)}}
	require.NoError(t, f.Heartbeat(ctx, asked, probed))
	require.NoError(t, f.Heartbeat(ctx, asked[:1], probed[:1]))

	s.Do(t, "HSET", "k", ofA(1), "1")
	for range 2 {
		_, err := f.ForceRelease(ctx, "k")
		require.NoError(t, err)
	}
}

// Each of the scripts refuses bad settings before it does anything, except release,
// which reads them when its own work is done and an owner waits.
func TestF8_FairScriptsRefuseBadSettings(t *testing.T) {
	r := newHarness(t)
	keys := appendFairKeys(nil, "k")
	good := "5000 6000 3600000 5 10"
	run := func(sc script, settings string) error {
		args := append(append(append([]string{}, keys...), "stone"), settings, ofA(2), "1000")
		n := 6
		switch sc.sha {
		case fairHeartbeat.sha:
			args = append(append([]string{}, keys...), settings, clientA, "1", ofA(2), "1000")
			n = 5
		case fairEnter.sha:
			args = args[:len(args)-1]
		}
		_, err := r.node.run(bounded(t), sc, n, args...)
		return err
	}
	for _, sc := range []script{fairAcquire, fairEnter, fairLeave, fairConfirm, fairHeartbeat, fairForceRelease} {
		name, _, _ := strings.Cut(sc.text, ":")
		for _, settings := range []string{"", " ", "0 6000 3600000 5 10", "5000 0 3600000 5 10", "5000 6000 3600000 5",
			good + " 1", good + " ", " " + good, "5000 6000 3600000 5 -1", "5000 6000 3600000 5 1.5", "5000 6e3 3600000 5 10",
			"05 6000 3600000 5 10", "5000 6000 3600000 1000 10", "5000 6000 3600000 5 1000000000", "5000 6000 1000000000000000 5 10",
			"5000 1000000000000000 3600000 5 10", "1000000000000 6000 3600000 5 10", "5000 0 3600000 5 0"} {
			r.s.Do(t, "FLUSHALL")
			r.follow(ofA(1), ofB(1))
			before := state(t, r.s)
			err := run(sc, settings)
			require.ErrorContains(t, err, "settings", "%s %q", name, settings)
			require.Equal(t, Refused, OutcomeOf(err))
			require.Equal(t, before, state(t, r.s))
		}
		require.NoError(t, run(sc, good), name)
	}
}

func TestF8_FairScriptsRefuseBadArguments(t *testing.T) {
	r := newHarness(t)
	bad := []string{"", "0", "-1", "1.5", "1e3", "0x10", " 1", "1 ", "nan", "9999999999999999999"}
	run := func(name string, sc script, keys int, args ...string) {
		t.Helper()
		names := append(appendFairKeys(nil, "k"), "g", "h", "i")[:keys]
		args = append([]string{"5000 6000 3600000 5 10"}, args...)
		for _, held := range []bool{false, true} {
			r.s.Do(t, "FLUSHALL")
			if held {
				r.follow(ofA(1), ofA(5))
			}
			before := state(t, r.s)
			_, err := r.node.run(bounded(t), sc, keys, append(names, args...)...)
			require.ErrorContains(t, err, name, "%q", args)
			require.Equal(t, Refused, OutcomeOf(err))
			require.Equal(t, before, state(t, r.s))
		}
	}
	for _, v := range bad {
		run("lease", fairAcquire, 6, ofA(1), v)
		run("lease", fairConfirm, 5, ofA(1), v)
		if v != "0" {
			run("last fence", fairRelease, 5, ofA(1), v)
		}
	}
	for _, owner := range []string{"", clientA, clientA + ":1", ofJ(1), ofA(1)[1:]} {
		run("owner", fairAcquire, 6, owner, "1000")
		run("owner", fairEnter, 6, owner)
	}
	run("owner", fairEnter, 7, ofA(2), ofB(1)) // another client's
	run("owners", fairEnter, 5)
	run("owners", fairEnter, 6, ofA(2), ofA(3))
	run("owners", fairEnter, 7, ofA(2))
	run("owners", fairLeave, 5)
	run("owners", fairLeave, 7, ofA(1))
	run("five", fairHeartbeat, 6, clientA, "0")
	run("count", fairAcquireEach, 6, ofA(1), "1000") // settings, where a count is wanted
	run("count", fairReleaseEach, 5, ofA(1), "0")
}

func TestF8_FairBadArguments(t *testing.T) {
	f := NewFair(NewNode(nil), settingsOf(clientA)) // any I/O would panic
	ctx := bounded(t)
	for _, key := range []string{"", long(1025)} {
		for name, verb := range fairVerbs {
			err := verb(ctx, f, key)
			require.ErrorContains(t, err, "key", name)
			require.Equal(t, Refused, OutcomeOf(err), name)
		}
	}
	for _, d := range []time.Duration{0, time.Millisecond, 30*time.Second + 1} {
		_, err := f.Acquire(ctx, "k", ofA(1), d)
		require.ErrorContains(t, err, "lease")
		_, err = f.Confirm(ctx, "k", ofA(1), d)
		require.ErrorContains(t, err, "lease")
		require.ErrorContains(t, f.AcquireEach(ctx, []Ask{{"k", ofA(1), d}}, make([]Result[Acquired], 1)), "lease")
	}
	for _, last := range []int64{-1, 1e16} {
		_, err := f.Release(ctx, "k", ofA(1), last, false)
		require.ErrorContains(t, err, "last fence")
	}
}

// fairVerbs runs every verb on key for the owner ofA(1) of client A. A heartbeat is not
// among them: its keys were entered.
var fairVerbs = map[string]func(ctx context.Context, f *Fair, key string) error{
	"acquire each": func(ctx context.Context, f *Fair, key string) error {
		said := make([]Result[Acquired], 2)
		if err := f.AcquireEach(ctx, []Ask{{key, ofA(1), lease}, {key, ofA(2), lease}}, said); err != nil {
			return err
		}
		return said[0].Err
	},
	"release each": func(ctx context.Context, f *Fair, key string) error {
		said := make([]Result[Passed], 2)
		if err := f.ReleaseEach(ctx, []FairHold{{Hold: Hold{key, ofA(1)}}, {Hold: Hold{key, ofA(2)}}}, said); err != nil {
			return err
		}
		return said[0].Err
	},
	"acquire": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Acquire(ctx, key, ofA(1), lease)
		return err
	},
	"enter": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Enter(ctx, key, ofA(1), ofA(2))
		return err
	},
	"confirm": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Confirm(ctx, key, ofA(1), lease)
		return err
	},
	"release": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Release(ctx, key, ofA(1), 1, true, ofA(2))
		return err
	},
	"leave": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Leave(ctx, key, 1, ofA(1), ofA(2))
		return err
	},
	"force_release": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.ForceRelease(ctx, key)
		return err
	},
	"inspect": func(ctx context.Context, f *Fair, key string) error {
		_, _, err := f.Inspect(ctx, key)
		return err
	},
	"queue": func(ctx context.Context, f *Fair, key string) error {
		_, err := f.Queue(ctx, key)
		return err
	},
}
