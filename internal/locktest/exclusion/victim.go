package exclusion

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// victim is the place of one process of a campaign. One goroutine's own, by turns.
type victim struct {
	t      *testing.T
	name   string // of the place; its processes are name.1, name.2, …
	orders orders
	random *rand.Rand
	beat   time.Duration
	ways   *Proxies // to the servers
	child  *Child
	starts int
	died   map[string]time.Duration // when a process was gone
	faults map[string]int           // by kind
}

func (v *victim) start() {
	v.starts++
	v.orders.Process, v.orders.Seed = v.name+"."+strconv.Itoa(v.starts), v.random.Uint64()
	text, err := json.Marshal(v.orders)
	require.NoError(v.t, err)
	v.child = StartChild(v.t, "exclusion", string(text))
	v.child.Expect("ready")
}

// suffer brings one fault after the other upon the process.
func (v *victim) suffer(end time.Time) {
	kinds := []fault{
		{"kill", v.kill},
		{"pause", v.pause},
		{"cut", func(time.Duration) { v.ways.Cut() }},
		{"refuse", v.refuse},
		{"hold requests", func(d time.Duration) { v.hold(v.ways.HoldRequests, d) }},
		{"hold replies", func(d time.Duration) { v.hold(v.ways.HoldReplies, d) }},
	}
	for time.Now().Before(end) {
		time.Sleep(upTo(v.random, v.beat))
		kind := kinds[v.random.IntN(len(kinds))]
		kind.do(upTo(v.random, 2*v.beat))
		v.faults[kind.name]++
	}
}

func upTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// kill kills the process, every other time while it stands still.
func (v *victim) kill(d time.Duration) {
	if v.random.IntN(2) == 0 {
		v.child.Pause()
		time.Sleep(d)
	}
	v.child.Kill()
	v.died[v.orders.Process] = Clock()
	v.start()
}

func (v *victim) pause(d time.Duration) {
	v.child.Pause()
	time.Sleep(d)
	v.child.Resume()
}

// refuse cuts the process off, and keeps it from coming back for a while.
func (v *victim) refuse(d time.Duration) {
	v.ways.Refuse(true)
	v.ways.Cut()
	time.Sleep(d)
	v.ways.Refuse(false)
}

// hold keeps the process's requests, or Redis' replies, on their way.
func (v *victim) hold(side func(bool), d time.Duration) {
	side(true)
	time.Sleep(d)
	side(false)
}
