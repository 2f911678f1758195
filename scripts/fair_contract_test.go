package scripts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
