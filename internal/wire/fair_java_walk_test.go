package wire

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// walk is a model of one queue of Go and Java owners, beside the real one. Every
// step is checked against it.
type walk struct {
	*harness
	rand   *rand.Rand
	next   int      // number of the next owner
	holder string   // "" while the lock is free
	queue  []string // the waiting owners, in the order in which they entered
	asked  map[string]time.Duration
	taken  map[bool]int // acquisitions, by whether they are Java's
	turn   string       // of a Java owner, as keepsTurn has noted it
}

func isJava(owner string) bool { return owner[:36] == clientJ || owner[:36] == clientK }

// TestG8_Java_WalkOfMixedQueue takes random steps of three Go clients and two
// Java programs at one lock. No owner gets it out of turn, and none that is alive is
// thrown out of the queue.
func TestG8_Java_WalkOfMixedQueue(t *testing.T) {
	w := &walk{harness: newHarness(t), rand: rand.New(rand.NewPCG(1, 2)), asked: map[string]time.Duration{}, taken: map[bool]int{}}
	const acquisitions = 2000
	for w.taken[true]+w.taken[false] < acquisitions {
		before := serverMillis(t, w.s)
		w.step()
		w.settle()
		w.keepsTurn(before)
		require.Equal(t, append([]string{}, w.queue...), w.waiting(), "the queue")
		require.Equal(t, w.holder, strings.Join(listed(t, w.s, "HKEYS", "k"), " "), "the holder")
		require.Less(t, w.furthest(), 2*time.Hour, "scores do not run away")
	}
	require.Greater(t, min(w.taken[true], w.taken[false]), acquisitions/5)
}

func (w *walk) step() {
	switch n := w.rand.IntN(100); {
	case n < 45 && len(w.queue) < 10:
		w.comes()
	case n < 50 && len(w.queue) > 0:
		w.givesUp(w.queue[w.rand.IntN(len(w.queue))])
	case n < 60 && len(w.queue) > 0: // probes again, without a reason
		if owner := w.queue[w.rand.IntN(len(w.queue))]; isJava(owner) {
			w.tries(owner)
		} else {
			w.probes(owner[:36])
		}
	case n < 65: // somebody else would take it if nobody waited
		owner := w.newOwner(clientA, clientB, clientC)
		a := w.acquire(owner)
		require.Equal(w.t, w.holder == "" && len(w.queue) == 0, a.OK)
		if a.OK {
			w.takes(owner)
		}
	case w.holder != "":
		w.ends()
	case len(w.queue) > 0 && isJava(w.queue[0]): // it was woken
		w.tries(w.queue[0])
	}
}

func (w *walk) newOwner(clients ...string) string {
	w.next++
	client := clients[w.rand.IntN(len(clients))]
	if isJava(client) {
		return client + ":" + decimal(int64(w.next))
	}
	return goOwner(client, w.next)
}

// comes has somebody new enter the queue.
func (w *walk) comes() {
	owner := w.newOwner(clientA, clientB, clientC, clientJ, clientK, clientJ)
	if isJava(owner) {
		w.tries(owner)
		if w.holder != owner {
			w.queue = append(w.queue, owner)
			w.subscribe(w.ownerChannel(owner))
		}
		return
	}
	e := w.enter(owner)
	w.queue, w.asked[owner] = append(w.queue, owner), e.Ahead
	if e.Java {
		w.subscribe(w.ownerChannel(owner))
	}
	w.granted(e.Grant)
}

// tries has a Java owner try; it gets the lock just if it is free and its turn.
func (w *walk) tries(owner string) {
	w.t.Helper()
	turn := w.holder == "" && (len(w.queue) == 0 || w.queue[0] == owner)
	require.Equal(w.t, turn, w.javaTries(owner), owner)
	if turn {
		w.takes(owner)
	}
}

// takes notes that owner holds the lock now: it must have been the first.
func (w *walk) takes(owner string) {
	w.t.Helper()
	require.Empty(w.t, w.holder)
	if len(w.queue) > 0 {
		require.Equal(w.t, w.queue[0], owner, "out of turn")
		w.queue = w.queue[1:]
	}
	w.holder = owner
	w.taken[isJava(owner)]++
	w.silences(owner)
}

func (w *walk) granted(g Grant) {
	w.t.Helper()
	if g.Lease > 0 {
		w.takes(g.Owner)
	}
}

// probes is a heartbeat of a client, for all its waiters.
func (w *walk) probes(client string) {
	w.t.Helper()
	var asked HeartbeatRequest
	for _, owner := range w.queue {
		if strings.HasPrefix(owner, client) {
			asked.Owners = append(asked.Owners, owner)
			asked.Ahead = append(asked.Ahead, w.asked[owner])
		}
	}
	reply := w.beat(client, asked)
	require.NoError(w.t, reply.Err)
	require.Empty(w.t, reply.Absent)
	w.granted(reply.Grant)
}

// ends has the holder release the lock.
func (w *walk) ends() {
	owner := w.holder
	w.holder = ""
	if isJava(owner) {
		w.javaUnlocks(owner)
		return
	}
	w.granted(w.release(owner).Grant)
}

func (w *walk) givesUp(owner string) {
	i := slices.Index(w.queue, owner)
	w.queue = slices.Delete(w.queue, i, i+1)
	if isJava(owner) {
		w.javaGivesUp(owner)
	} else {
		w.granted(w.leave(owner).Grant)
	}
	w.silences(owner)
}

// silences ends the subscription of an owner that does not wait any more.
func (w *walk) silences(owner string) { w.unsubscribe(w.ownerChannel(owner)) }

// settle takes in all that was said. An owner that Java wakes probes.
func (w *walk) settle() {
	w.t.Helper()
	for _, m := range w.messages() {
		channel, message, _ := strings.Cut(m, " ")
		if g, ok := ParseGrant("k", message); ok {
			w.takes(g.Owner)
			continue
		}
		owner := strings.TrimPrefix(channel, channels("k"))
		if message == "0" && !isJava(owner) && w.holder == "" {
			w.probes(owner[:36])
		}
	}
}

// keepsTurn has a turn of a Java owner that began since then last longer than its 3 s, for a machine that stands still.
func (w *walk) keepsTurn(since int64) {
	w.t.Helper()
	noted := listed(w.t, w.s, "HMGET", heartbeats("k"), "java")[0]
	if noted == w.turn {
		return
	}
	last, now := strings.LastIndexByte(noted, ' ')+1, serverMillis(w.t, w.s)
	ends, err := strconv.ParseInt(noted[last:], 10, 64)
	require.NoError(w.t, err)
	require.GreaterOrEqual(w.t, ends, since+250)
	require.LessOrEqual(w.t, ends, now+3000)
	w.turn = noted[:last] + decimal(now+redistest.Patience.Milliseconds())
	w.s.Do(w.t, "HSET", heartbeats("k"), "java", w.turn)
}

// furthest is by how much the largest score lies ahead of the server's clock.
func (w *walk) furthest() time.Duration {
	w.t.Helper()
	for _, last := range listed(w.t, w.s, "ZRANGE", scores("k"), "-1", "-1") {
		return w.ahead(last)
	}
	return 0
}
