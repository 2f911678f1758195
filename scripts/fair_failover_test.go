package scripts

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A client whose inbox is subscribed at a replica only, as on a master that was demoted,
// would get what the master publishes though the master counts no receiver and passes over
// the waiter. Both clients would then believe that they hold the lock.
func TestF36_GrantsReachOnlyThoseThatAreCounted(t *testing.T) {
	r := newHarness(t)
	host, port, err := net.SplitHostPort(r.s.Addr())
	require.NoError(t, err)
	r.s.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", host, port)
	until(t, func() bool { return number(t, r.s, "WAIT", "1", "100") == 1 })
	demoted := listen(t, replica)
	inbox := r.of(clientA).Inbox("k")
	demoted.subscribe(inbox)
	r.unsubscribe(inbox)

	r.follow(ofC(1), ofA(1), ofB(1))
	require.Equal(t, Passed{Ours: true}, r.release(ofC(1)))
	r.requireHeld(ofB(1), firstLease)
	r.requireSaid(grantMessage(ofB(1)))
	r.requireQueue(ofA(1))
	require.EqualValues(t, 1, number(t, r.s, "WAIT", "1", "5000"))
	demoted.requireSaid()
}
