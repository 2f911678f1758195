package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

// hand is one thread of an agent at one lock.
type hand struct {
	t testing.TB
	*agent
	thread, kind, key string
}

func (a *agent) hand(t testing.TB, thread, kind, key string) hand {
	return hand{t: t, agent: a, thread: thread, kind: kind, key: key}
}

// otherThread is another thread of the same agent.
func (h hand) otherThread() hand {
	h.thread = "other than " + h.thread
	return h
}

func (h hand) command(op string) command {
	return command{Op: op, Thread: h.thread, Kind: h.kind, Key: h.key}
}

func ms(d time.Duration) *int64 {
	n := d.Milliseconds()
	return &n
}

// waits locks on a thread of its own.
func (h hand) waits() <-chan answer { return h.send(h.command("lock")) }

// lock waits until it has the lock.
func (h hand) lock() answer { h.t.Helper(); return got(h.t, h.waits()) }

// lockFor locks for a fixed lease.
func (h hand) lockFor(lease time.Duration) answer {
	h.t.Helper()
	c := h.command("lock")
	c.Lease = ms(lease)
	return got(h.t, h.send(c))
}

// does is an operation that must not fail.
func (h hand) does(op string) answer {
	h.t.Helper()
	a := h.do(h.t, h.command(op))
	require.Empty(h.t, a.Error, "%s %s", h.lang, op)
	return a
}

// try makes one attempt.
func (h hand) try() bool { h.t.Helper(); return h.does("tryLock").OK }

// triesFor waits on a thread of its own, for a time at most.
func (h hand) triesFor(patience time.Duration) <-chan answer {
	c := h.command("tryLock")
	c.Patience = ms(patience)
	return h.send(c)
}

// unlock gives back what it holds.
func (h hand) unlock() { h.t.Helper(); h.does("unlock") }

// refused requires that its unlock is refused, as it is not the owner.
func (h hand) refused() {
	h.t.Helper()
	require.Equal(h.t, notOwner, h.do(h.t, h.command("unlock")).Error)
}

// sees requires that the lock is held with that many entries; "": free.
func (h hand) sees(owner string, entries int) {
	h.t.Helper()
	a := h.does("inspect")
	require.Equal(h.t, []any{owner != "", owner, entries}, []any{a.OK, a.Text, int(a.Number)}, "as %s sees it", h.lang)
}

// counts requires that the thread itself holds so many entries.
func (h hand) counts(entries int) {
	h.t.Helper()
	a := h.does("held")
	require.Equal(h.t, []any{entries > 0, entries}, []any{a.OK, int(a.Number)})
}

func (h hand) forceUnlock() bool { h.t.Helper(); return h.does("forceUnlock").OK }

func (h hand) interrupt() { h.t.Helper(); h.do(h.t, h.command("interrupt")) }

// got waits for the lock.
func got(t testing.TB, from <-chan answer) answer {
	t.Helper()
	a := answerOf(t, from)
	require.Empty(t, a.Error)
	require.True(t, a.OK, "not acquired")
	return a
}

// notGot waits for the end of a wait in vain.
func notGot(t testing.TB, from <-chan answer) answer {
	t.Helper()
	a := answerOf(t, from)
	require.Empty(t, a.Error)
	require.False(t, a.OK, "acquired")
	return a
}

// number runs a command that answers with one, and whose first argument is a key.
func number(t testing.TB, s redis, args ...string) int64 {
	t.Helper()
	return int64(locktest.Number(t, s.of(t, args[1]), args...))
}

// listening is how many clients listen for the release of a plain lock.
func listening(t testing.TB, s redis, key string) int64 {
	t.Helper()
	return listeners(t, s, scripts.Channel(key))
}

// listeners is how many clients listen to a channel.
func listeners(t testing.TB, s redis, channel string) int64 {
	t.Helper()
	return locktest.Must(s.of(t, channel).Do(t, "PUBSUB", s.numsub, channel).AsIntMap())(t)[channel]
}

// awaitWaiters waits until that many clients wait for a plain lock, or until the queue of a
// fair one has that many threads and the last of them listens: Java subscribes only after
// it has entered, and has a short turn until then.
func awaitWaiters(t testing.TB, s redis, kind, key string, n int64) {
	t.Helper()
	if !strings.HasPrefix(kind, "fair") {
		locktest.Await(t, func() bool { return listening(t, s, key) == n })
		return
	}
	var queue []string
	locktest.Await(t, func() bool {
		queue = locktest.Queued(t, s.of(t, key), key)
		return int64(len(queue)) == n
	})
	if n > 0 && isJava(queue[n-1]) {
		locktest.Await(t, func() bool { return listeners(t, s, scripts.Channel(key)+":"+queue[n-1]) == 1 })
	}
}

// isJava tells owners apart: the numbers of ours begin with a zero.
func isJava(owner string) bool {
	_, thread, _ := strings.Cut(owner, ":")
	return !strings.HasPrefix(thread, "0")
}

// tidy requires that nothing is left of a lock.
func tidy(t testing.TB, s redis, key string) {
	t.Helper()
	require.Zero(t, number(t, s, "EXISTS", key, locktest.QueueOf(key), locktest.ScoresOf(key)))
	locktest.Await(t, func() bool { return listening(t, s, key) == 0 }) // an unsubscription is not waited for
}
