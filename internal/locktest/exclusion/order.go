package exclusion

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// queueWatch follows the queue of the key k of a fair lock, by what Redis says that it does.
type queueWatch struct {
	entered []string // owners that entered the queue, in their order
	granted []string // owners that had their turn, or took a key without waiters, in theirs
	inRuns  int      // how many of these had it in another's hold
	holder  string
	took    int             // the call in which it became that
	passed  map[string]bool // owners that were passed over
	calls   int             // that were not made by a script
	call    []string        // the last of them
}

func newQueueWatch() *queueWatch { return &queueWatch{passed: map[string]bool{}} }

// see takes in the next command.
func (q *queueWatch) see(c redistest.Command) {
	if !c.Scripted {
		q.calls, q.call = q.calls+1, c.Words
		return
	}
	if len(c.Words) < 3 {
		return
	}
	owner := c.Words[2]
	switch c.Words[0] + " " + c.Words[1] {
	case "RPUSH " + locktest.QueueOf("k"):
		q.entered = append(q.entered, c.Words[2:]...)
	case "HSET k":
		if owner != q.holder {
			q.holder, q.took, q.granted = owner, q.calls, append(q.granted, owner)
		}
	case "HDEL k":
		if owner != q.holder { // an undo, of an owner that turns out to hold nothing
			return
		}
		if q.took == q.calls {
			q.passOver(owner)
		}
		if locktest.Verb(q.call) == "release" {
			q.released()
		}
		q.holder = ""
	}
}

// passOver takes back a grant, as the call that gave it does when nobody listens at the owner's client yet. All that wait
// there are passed over with it. A process on a busy machine enters before it listens.
func (q *queueWatch) passOver(owner string) {
	q.granted = q.granted[:len(q.granted)-1]
	for _, waits := range q.entered {
		if clientOf(waits) == clientOf(owner) && !slices.Contains(q.granted, waits) {
			q.passed[waits] = true
		}
	}
}

// released notes the owners that had their turn in the hold that a release ends. A call counts
// when it is done: Redis may not know the script.
func (q *queueWatch) released() {
	keys, _ := strconv.Atoi(q.call[2])
	args := q.call[3+keys:] // settings, owner, last fence, served
	if q.holder == args[1] {
		q.granted = append(q.granted, args[3:]...)
		q.inRuns += len(args[3:])
	}
}

// over returns the owners that were granted the key, after all have left the queue. wrong says
// which of them did not come in the order in which they had entered. Neither knows of those that were passed over.
func (q *queueWatch) over() (granted []string, wrong string) {
	waited := map[string]bool{}
	entered := slices.DeleteFunc(q.entered, func(owner string) bool { return q.passed[owner] })
	for _, owner := range entered {
		waited[owner] = true
	}
	granted = slices.DeleteFunc(q.granted, func(owner string) bool { return !waited[owner] })
	for i, owner := range entered {
		if i == len(granted) || owner != granted[i] {
			return granted, fmt.Sprintf("%s, as number %d of %d, is not served in its turn", owner, i, len(entered))
		}
	}
	return granted, ""
}

func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

const (
	orderProcesses  = 8
	orderGoroutines = 8
)

func init() { locktest.RegisterChild("order", orderChild) }

// orderChild locks and unlocks k on many goroutines until it hears a line.
// Args: the address of Redis, whether locks are handed over locally.
func orderChild(d locktest.Kind, p *locktest.Parent) error {
	client, err := p.Client(p.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	o := locktest.Options{Lease: locktest.Long, WaiterTTL: locktest.Long} // a place lost on a busy machine would be none in the order
	if p.Args[1] == "false" {
		o.Handover = new(time.Duration)
	}
	locker, err := d.New(client, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	errs := make(chan error, orderGoroutines)
	for range orderGoroutines {
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				err = locker.Do(context.Background(), "k", func(context.Context) error { return nil })
			}
			errs <- err
		}()
	}
	p.Hear()
	stop()
	for range orderGoroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	return locker.Close()
}

// RunOrder has eight processes of eight goroutines take 10 000 grants of one key, 2 000
// in short tests, half of the processes with local hand-over, and requires that they come in the
// order in which the waiters have entered, but for those that were passed over.
func RunOrder(t *testing.T, d locktest.Kind) {
	grants := 10_000
	if testing.Short() {
		grants = 2_000
	}
	q := orderRun(t, grants, nil)
	granted, wrong := q.over()
	require.Empty(t, wrong)
	require.Less(t, len(q.passed), grants/4, "nearly all listen when their turn comes")

	// An order among the waiters of one process, or without runs, proves little.
	turns := 0
	for i, owner := range granted[1:] {
		if clientOf(owner) != clientOf(granted[i]) {
			turns++
		}
	}
	t.Logf("%d grants, %d in runs, %d from process to process, %d passed over", len(granted), q.inRuns, turns, len(q.passed))
	require.Greater(t, turns, grants/20)
	require.Greater(t, q.inRuns, grants/200)
}

// RunOrderControl makes a short run with a client that moves the last of the queue to its
// front. The check must find that.
func RunOrderControl(t *testing.T, _ locktest.Kind) {
	q := orderRun(t, 500, func(s *redistest.Server) {
		_, _ = s.TryDo("EVAL", `if redis.call('LLEN', KEYS[1]) > 2 then redis.call('LMOVE', KEYS[1], KEYS[1], 'RIGHT', 'LEFT') end`, "1", locktest.QueueOf("k"))
	})
	_, wrong := q.over()
	require.NotEmpty(t, wrong)
}

// orderRun returns after that many grants. It calls disturb all the time.
func orderRun(t *testing.T, grants int, disturb func(*redistest.Server)) *queueWatch {
	s, q := redistest.Start(t), newQueueWatch()
	enough, once := make(chan struct{}), sync.Once{}
	stop := s.Monitor(t, func(c redistest.Command) {
		q.see(c)
		if len(q.granted) >= grants {
			once.Do(func() { close(enough) })
		}
	})
	children := make([]*locktest.Child, orderProcesses)
	for i := range children {
		children[i] = locktest.StartChild(t, "order", s.Addr(), strconv.FormatBool(i%2 == 0))
	}
	limit := time.After(10 * locktest.Patience)
	for waiting := true; waiting; {
		select {
		case <-enough:
			waiting = false
		case <-limit:
			require.FailNow(t, "too few grants")
		case <-time.After(10 * time.Millisecond):
			if disturb != nil {
				disturb(s)
			}
		}
	}
	for _, c := range children {
		c.Say("stop")
	}
	for _, c := range children {
		c.Await()
	}
	stop()
	return q
}

// RunLongQueue has 2 000 wait for one key, of four clients, and requires that they
// are served in their order.
func RunLongQueue(t *testing.T, d locktest.Kind) {
	const clients, each = 4, 500
	s, q := redistest.Start(t), newQueueWatch()
	stop := s.Monitor(t, q.see)
	ctx, cancel := context.WithTimeout(context.Background(), 5*locktest.Patience)
	defer cancel()
	before := locktest.Lock(t, d.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long}), ctx, "k")
	errs := make(chan error, clients*each)
	for range clients {
		locker := d.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
		for range each {
			go func() { errs <- locker.Do(ctx, "k", func(context.Context) error { return nil }) }()
		}
	}
	locktest.Await(t, func() bool { return locktest.Number(t, s, "LLEN", locktest.QueueOf("k")) == clients*each })
	locktest.Await(t, func() bool { // all listen, else they are passed over
		inboxes := s.Do(t, "PUBSUB", "CHANNELS", "redisson_lock__channel:{k}:????????-????-????-????-????????????")
		all, err := inboxes.AsStrSlice()
		require.NoError(t, err)
		return len(all) == clients
	})
	require.NoError(t, before.Unlock(ctx))
	for range clients * each {
		require.NoError(t, <-errs)
	}
	stop()
	granted, wrong := q.over()
	require.Empty(t, wrong)
	require.Len(t, granted, clients*each)
}
