package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

// A renewal that comes late finds the entry of the lease, perhaps, but brings it not back.
func TestG1_ALateRenewalRevivesNoPermit(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ofA(1), ofA(2), ofA(3))
	over(t, s, ofA(2))
	answers := make([]watchdog.Answer, 4)
	owners := []string{ofA(1), ofA(2), ofA(3), ofB(1)}
	require.NoError(t, p.Renew(bounded(t), lease, []string{"k", "k", "k", "k"}, owners, answers))
	require.Equal(t, []watchdog.Answer{watchdog.Renewed, watchdog.NotOurs, watchdog.Renewed, watchdog.NotOurs}, answers)
	require.False(t, must(p.SetEntries(bounded(t), "k", ofA(2), Entries{Count: 1}))(t))
	require.True(t, must(p.Acquire(bounded(t), asking("k", ofA(2))))(t).Gone)
	takes(t, p, ofB(1))
	isFull(t, p, ofB(2))
	s.Do(t, "DEL", "k")
	require.NoError(t, p.Renew(bounded(t), lease, []string{"k", "k", "k", "k"}, owners, answers))
	require.Equal(t, slices.Repeat([]watchdog.Answer{watchdog.NotOurs}, 4), answers)
	require.EqualValues(t, 0, number(t, s, "EXISTS", "k"))
}

// Many renewals in one call, of keys that Redis refuses among them.
func TestRenewPermitsOfManyKeys(t *testing.T) {
	s, p := permitted3(t)
	var keys, owners []string
	for i := range 300 {
		keys, owners = append(keys, fmt.Sprint("key", i)), append(owners, ofA(i+1))
		must(p.Acquire(bounded(t), asking(keys[i], owners[i])))(t)
	}
	s.Do(t, "SET", keys[7], "x")
	s.Do(t, "DEL", keys[8])
	want := slices.Repeat([]watchdog.Answer{watchdog.Renewed}, len(keys))
	want[7], want[8] = watchdog.NotOurs, watchdog.NotOurs
	answers := make([]watchdog.Answer, len(keys))
	require.NoError(t, p.Renew(bounded(t), 2*lease, keys, owners, answers))
	require.Equal(t, want, answers)
	lasts(t, s, keys[6], 2*lease)
	lasts(t, s, keys[299], 2*lease)
}

// The permits of one key share the cost of its expiry.
func TestRenewPermitsOfOneKey(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ofA(1), ofA(2), ofA(3))
	answers := make([]watchdog.Answer, 4)
	s.Do(t, "CONFIG", "RESETSTAT")
	require.NoError(t, p.Renew(bounded(t), 2*lease, []string{"k", "k", "k", "k"}, []string{ofA(1), ofB(1), ofA(2), ofA(3)}, answers))
	require.Equal(t, []watchdog.Answer{watchdog.Renewed, watchdog.NotOurs, watchdog.Renewed, watchdog.Renewed}, answers)
	asked := cost(t, s)
	require.Equal(t, []int{4, 3, 2}, []int{asked["zscore"], asked["zadd"], asked["pexpire"]})
	lasts(t, s, "k", 2*lease)
	lasts(t, s, permitRecord("k"), 2*lease)
	for i := range 3 {
		require.InDelta(t, serverMillis(t, s)+2*lease.Milliseconds(), number(t, s, "ZSCORE", "k", ofA(i+1)), slackMillis)
	}
}
