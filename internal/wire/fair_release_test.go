package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A grant names the owners of the same client that follow it, up to a number, and no Java waiter of a strange name.
func TestRunOfAGrant(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 2 })
	for _, c := range []struct{ waiting, members []string }{
		{[]string{ofA(1), clientA + ":2", ofA(3)}, nil},
		{[]string{ofA(1), ofA(2), clientA + ":3"}, []string{ofA(2)}},
		{[]string{ofA(1), ofA(2), ofA(3), ofA(4)}, []string{ofA(2), ofA(3)}},
	} {
		r.s.Do(t, "DEL", "k", queue("k"))
		r.s.Do(t, append([]string{"RPUSH", queue("k")}, c.waiting...)...)
		require.Equal(t, c.members, r.heartbeat(clientA).Grant.Members)
	}

	// Others get the names by the message.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofC(1), ofB(1), ofA(1), ofA(2), ofA(3), ofA(4))
	r.unsubscribe(r.of(clientB).Inbox("k"))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1), "02", "03"))
}

// However many follow, a grant names them all up to the most, and nobody beyond.
func TestRunOfMany(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 30 })
	for _, count := range []int{1, 7, 8, 9, 23, 24, 25, 29, 30, 31} {
		r.s.Do(t, "FLUSHALL")
		r.hold()
		var owners []string
		for i := range count + 1 {
			owners = append(owners, ofA(i))
		}
		r.enter(owners...)
		r.waits(ofB(1), ofA(99))
		r.expire()
		require.Equal(t, owners[1:min(count, 30)+1], r.heartbeat(clientA).Grant.Members, "%d follow", count)
	}
}
