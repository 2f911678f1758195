package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a server that lets its clock run on during a script, the leases of others may end before the new one is kept.
// Then nobody has it.
func TestG1_TheLastLeaseEndsDuringAnAcquire(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ownA)
	text := strings.Replace(semaphoreAcquire.text, "local kept =", "redis.call('DEL', holds) local kept =", 1)
	_, err := p.redis.invoke(bounded(t), scriptOf(text), 3, "k", permitRecord("k"), tombstone("k", ownB), ownB, millis(lease), "3", "1")
	require.Equal(t, Unavailable, OutcomeOf(err), err)
	require.Empty(t, taken(t, p))

	r := NewRWLock(p.redis, clientA)
	require.True(t, must(r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking("rw", ownA)}))(t).OK)
	text = strings.Replace(rwlockAcquire.text, "set = redis.pcall('PEXPIRE', lock", "redis.call('DEL', lock) set = redis.pcall('PEXPIRE', lock", 1)
	_, err = r.redis.invoke(bounded(t), scriptOf(text), 5, "rw", tombstone("rw", ownB), timeout("rw", ownB), wishes("rw"), absentKey("rw"),
		ownB, millis(2*lease), "1", clientB, "0", "")
	require.Equal(t, Unavailable, OutcomeOf(err), err)
	exists := s.Do(t, "EXISTS", "rw")
	require.Zero(t, must(exists.AsInt64())(t))
}
