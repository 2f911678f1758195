package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// resizeLease leaves nodes time to answer on a busy machine: RunResize needs the lock to be
// had with each number of nodes.
const resizeLease = 2 * time.Second

// RunResize changes the number of nodes from three to five and back, one at a time,
// by deleting their markers; but clients of the former number, which should have been
// stopped, go on and mark nodes for themselves. It checks that the leases of a key
// never overlapped, and that each number gets the lock when the clients of the former are gone.
// In short tests it ends with four.
func RunResize(t *testing.T) {
	t.Parallel()
	r := newResize(t, resizeLease)
	now, steps := r.settle(3), []int{4, 5, 4, 3}
	if testing.Short() {
		steps = steps[:1]
	}
	for _, next := range steps {
		now = r.step(now, next)
	}
	now.stop()
	require.Empty(t, r.overlaps(), "two holders")
}

// RunResizeControl adds two nodes at once, until leases overlap: the check of RunResize
// finds what it looks for. It takes a machine that has time for many grants, so it is no short
// test.
func RunResizeControl(t *testing.T) {
	locktest.InTestAll(t)
	t.Parallel()
	for range 30 { // one of four shows it
		r := newResize(t, chaosLease)
		r.step(r.settle(3), 5).stop()
		if len(r.overlaps()) > 0 {
			return
		}
	}
	require.Fail(t, "no overlap is found")
}

type resize struct {
	t     *testing.T
	lease time.Duration
	nodes []*redistest.Server
	file  string
	rec   *exclusion.Recorder
}

func newResize(t *testing.T, lease time.Duration) *resize {
	r := &resize{t: t, lease: lease, file: filepath.Join(t.TempDir(), "records")}
	for range chaosNodes {
		r.nodes = append(r.nodes, redistest.Start(t))
	}
	require.NoError(t, os.WriteFile(r.file, nil, 0o600))
	r.rec = locktest.Must(exclusion.NewRecorder(r.file, "0"))(t)
	t.Cleanup(func() { _ = r.rec.File.Close() })
	return r
}

// settlers are clients that use the first so many of the nodes.
type settlers struct {
	grants atomic.Int64
	stop   func()
}

func (r *resize) settle(nodes int) *settlers {
	c := &settlers{}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for range 2 {
		var clients []rueidis.Client
		for _, n := range r.nodes[:nodes] {
			clients = append(clients, n.Client(r.t))
		}
		none := time.Duration(0)
		l := locktest.Must(Tested.New(clients, MastersOptions{Lease: r.lease, Handover: &none}))(r.t)
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for ctx.Err() == nil {
					r.use(ctx, c, l)
				}
			})
		}
		work.Go(func() {
			users.Wait()
			_ = l.Close() // what is not released now frees itself
		})
	}
	c.stop = func() { cancel(); work.Wait() }
	r.t.Cleanup(c.stop)
	return c
}

// use takes one lease, holds it for a while and gives it back.
func (r *resize) use(ctx context.Context, c *settlers, l locktest.Locker) {
	wait, cancel := context.WithTimeout(ctx, r.lease/3)
	defer cancel()
	called := locktest.Clock()
	lease, err := l.Lock(wait, "key"+strconv.Itoa(rand.IntN(2)))
	if err != nil { // usually refused
		time.Sleep(rand.N(5 * time.Millisecond))
		return
	}
	c.grants.Add(1)
	rec := r.rec.Granted(lease, false, called)
	most := 5 * time.Millisecond
	if rand.IntN(20) == 0 {
		most = 2 * r.lease
	}
	rec.Hold(ctx, rand.N(most))
	rec.Ends()
	_ = lease.Unlock(context.Background())
}

// step lets a number of nodes take the place of the former.
func (r *resize) step(before *settlers, nodes int) *settlers {
	now := r.settle(nodes)
	for range 3 {
		r.unmark()
		time.Sleep(r.lease + rand.N(2*r.lease)) // some quarantines end
	}
	before.stop()
	r.unmark()
	from := now.grants.Load()
	locktest.Await(r.t, func() bool { return now.grants.Load() > from+10 })
	r.t.Logf("%d nodes: %d grants", nodes, now.grants.Load())
	return now
}

func (r *resize) unmark() {
	for _, i := range rand.Perm(len(r.nodes)) {
		r.nodes[i].Do(r.t, "DEL", "holdfast_node")
		time.Sleep(rand.N(2 * time.Millisecond))
	}
}

func (r *resize) overlaps() []string {
	data := locktest.Must(os.ReadFile(r.file))(r.t)
	run := locktest.Must(exclusion.ReadRecords(data, nil, true))(r.t)
	r.t.Logf("%d grants, %d leases lost", len(run.Intervals), run.Lost())
	return exclusion.Check(run.Intervals).Overlaps
}
