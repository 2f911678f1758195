package contract

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var observeCases = []testCase{
	{"Observe_Call", defaults, observeCall},
	{"Observe_Reentry", defaults, observeReentry},
	{"Observe_HandOverAndGrant", tenured, observeHandOver},
	{"Observe_WokenWaiter", defaults, observeWoken},
	{"Observe_Refused", defaults, observeRefused},
	{"Observe_GaveUp", defaults, observeGaveUp},
	{"Observe_Lost", defaults, observeLost},
	{"Observe_Renewed", defaults, observeRenewed},
	{"Observe_Outage", defaults, observeOutage},
	{"Observe_OutageOfAHolder", defaults, observeOutageHeld},
	{"Observe_Close", defaults, observeClose},
	{"Observe_Panic", defaults, observePanic},
	{"Observe_Blocked", defaults, observeBlocked},
	{"Observe_LocksItself", defaults, observeLocks},
	{"Observe_Balance", defaults, observeBalance},
}

// seen are the events that an observer was told.
type seen struct {
	mu  sync.Mutex
	all []any // guarded by mu
}

func note[E any](s *seen) func(E) {
	return func(e E) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, e)
	}
}

func (s *seen) observer() *holdfast.Observer {
	return &holdfast.Observer{
		Acquired: note[holdfast.AcquiredEvent](s), Refused: note[holdfast.RefusedEvent](s), Released: note[holdfast.ReleasedEvent](s),
		Lost: note[holdfast.LostEvent](s), Renewed: note[holdfast.RenewedEvent](s), Woken: note[holdfast.WokenEvent](s),
		Queue: note[holdfast.QueueEvent](s), Place: note[holdfast.PlaceEvent](s), OutageBegan: note[holdfast.OutageBeganEvent](s),
		OutageEnded: note[holdfast.OutageEndedEvent](s), Dropped: note[holdfast.DroppedEvent](s),
	}
}

// of are the events of a kind.
func of[E any](s *seen) (all []E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		if e, is := e.(E); is {
			all = append(all, e)
		}
	}
	return all
}

// await waits for n events of a kind, and returns them.
func await[E any](c *harness, s *seen, n int) (all []E) {
	c.T.Helper()
	Await(c.T, func() bool { all = of[E](s); return len(all) >= n }, "%T", all)
	return all
}

// observed makes c.Locker one that tells s.
func (c *harness) observed(o Options) (s *seen) {
	c.T.Helper()
	s = &seen{}
	o.Observer = s.observer()
	c.Locker = c.Kind.Open(c.T, c.Client, o)
	c.commands()
	return s
}

// told closes the locker and returns all events in short, but those of the kinds without.
func (c *harness) told(s *seen, without ...string) (all []string) {
	c.T.Helper()
	require.NoError(c.T, c.Locker.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		line := ""
		switch e := e.(type) {
		case holdfast.AcquiredEvent:
			line = "acquired " + e.Key + " by " + string(e.How)
		case holdfast.ReleasedEvent:
			line = "released " + e.Key
		case holdfast.LostEvent:
			line = "lost " + e.Key
		case holdfast.RefusedEvent:
			line = "refused " + e.Key
		case holdfast.PlaceEvent: // comes late or not at all
			continue
		case holdfast.QueueEvent:
			line = fmt.Sprintf("queue %s %d", e.Key, e.Waiting)
		default:
			line = fmt.Sprintf("%T", e)
		}
		if !slices.ContainsFunc(without, func(w string) bool { return strings.HasPrefix(line, w) }) {
			all = append(all, line)
		}
	}
	return all
}

const pause = 20 * time.Millisecond

func observeCall(c *harness) {
	s := c.observed(defaults)
	before := time.Now()
	l := Lock(c.T, c.Locker, c.ctx, "k")
	locked := time.Now()
	time.Sleep(pause)
	c.unlock(l)
	held := time.Since(locked)
	require.NoError(c.T, c.Locker.Do(c.ctx, "another", func(context.Context) error { return nil }))
	require.Equal(c.T, []string{
		"acquired k by call", "released k", "acquired another by call", "released another",
	}, c.told(s))
	a, r := of[holdfast.AcquiredEvent](s)[0], of[holdfast.ReleasedEvent](s)[0]
	require.Positive(c.T, a.Waited)
	require.LessOrEqual(c.T, a.Waited, locked.Sub(before))
	require.GreaterOrEqual(c.T, r.Held, pause)
	require.LessOrEqual(c.T, r.Held, held+locked.Sub(before))
	require.NoError(c.T, r.Err)
}

// Each entry begins and ends by itself, in whatever order, and they are lost together.
func observeReentry(c *harness) {
	s := c.observed(defaults)
	nested := func() (outer, inner *holdfast.Lease) {
		outer = Lock(c.T, c.Locker, c.ctx, "k")
		time.Sleep(pause)
		return outer, Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	}
	outer, inner := nested()
	c.unlock(inner)
	c.unlock(outer)
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrReleased)
	outer, inner = nested()
	c.unlock(outer)
	c.unlock(inner)
	outer, inner = nested()
	_, err := c.Locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.T, err)
	require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrLost)
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrLost)
	begin := []string{"acquired k by call", "acquired k by re-entry"}
	require.Equal(c.T, slices.Concat(
		begin, []string{"released k", "released k"}, begin, []string{"released k", "released k"}, begin, []string{"lost k", "lost k"},
	), c.told(s))
	r := of[holdfast.ReleasedEvent](s)
	require.Less(c.T, r[0].Held+pause, r[1].Held)
}

// A hold passes on in memory; with fair, the queue has granted it before.
func observeHandOver(c *harness) {
	s := c.observed(tenured)
	holder, waits := c.lineUp("k", 2)
	time.Sleep(pause)
	for _, w := range waits {
		c.unlock(holder)
		holder = Got(c.T, w)
	}
	c.unlock(holder)
	told := c.told(s, "refused", "*", "holdfast.Woken")
	acquired, queue := of[holdfast.AcquiredEvent](s), of[holdfast.QueueEvent](s)
	for _, a := range acquired[len(acquired)-2:] {
		require.Equal(c.T, holdfast.ByHandOver, a.How)
		require.GreaterOrEqual(c.T, a.Waited, pause)
	}
	require.Equal(c.T, []string{
		"queue k 1", "released k", "acquired k by hand-over", "queue k 0", "released k", "acquired k by hand-over", "released k",
	}, told[len(told)-7:])
	require.Equal(c.T, holdfast.QueueEvent{Key: "k", Waiting: 1}, queue[0])
	if c.Kind.Fair {
		require.Equal(c.T, []holdfast.How{holdfast.ByCall, holdfast.ByGrant}, []holdfast.How{acquired[0].How, acquired[1].How})
		require.Len(c.T, acquired, 4)
	} else {
		require.Equal(c.T, []string{"acquired k by call", "queue k 1", "queue k 2"}, told[:len(told)-7])
	}
}

// A waiter of another process' lock is woken by a message.
// oneByOne are locks that are not handed over, with heartbeats every 600 ms.
var oneByOne = Options{Handover: &noHandover, Stale: 3 * time.Second, Lease: Long}

// The first waiter here is told its place when it enters and as it moves up, and costs no
// call more.
func observePlace(c *harness) {
	s := c.observed(oneByOne)
	held := Lock(c.T, c.Other, c.ctx, "k")
	var waits []<-chan Acquired
	for _, l := range []holdfast.Locker{c.Other, c.Other, c.Locker, c.Other, c.Locker} {
		waits = append(waits, c.inQueue(l, "k"))
	}
	places := func(want ...int) {
		c.T.Helper()
		var all []int
		Await(c.T, func() bool {
			all = nil
			for _, e := range of[holdfast.PlaceEvent](s) {
				require.Equal(c.T, "k", e.Key)
				all = append(all, e.Place)
			}
			return slices.Equal(want, all)
		}, "%v is not %v", &all, want)
	}
	places(3)
	c.commands()
	for i, want := range [][]int{{3, 2}, {3, 2, 1}, {3, 2, 1, 2}, {3, 2, 1, 2, 1}, {3, 2, 1, 2, 1}} {
		if i == 2 { // c.Locker gets the key, and learns by that where its next waiter stands
			heartbeats, _ := Holding("heartbeat")
			c.Proxy.OnReply(heartbeats)
		}
		c.unlock(held)
		held = Got(c.T, waits[i])
		places(want...)
		if i < 2 { // it only waits
			c.quiet()
		}
		c.Proxy.OnReply(nil)
		c.Proxy.Release()
	}
	c.unlock(held)
}

func observeWoken(c *harness) {
	s := c.observed(defaults)
	how := holdfast.ByCall
	if c.Kind.Fair {
		how = holdfast.ByGrant
	}
	Await(c.T, func() bool { // it may get the key by its look after the subscription
		before := len(of[holdfast.AcquiredEvent](s))
		their := Lock(c.T, c.Other, c.ctx, "k")
		waiter := GoLock(c.Locker, c.ctx, "k")
		c.AwaitWaiters("k", 1)
		time.Sleep(pause)
		c.unlock(their)
		c.unlock(Got(c.T, waiter))
		a := await[holdfast.AcquiredEvent](c, s, before+1)[before]
		require.Equal(c.T, how, a.How)
		require.GreaterOrEqual(c.T, a.Waited, pause)
		c.Traceless("k")
		woken := of[holdfast.WokenEvent](s)
		return len(woken) > 0 && woken[0] == holdfast.WokenEvent{Key: "k"}
	})
}

// What a call returns is what the observer is told.
func observeRefused(c *harness) {
	s := c.observed(Options{MaxWaiters: 1})
	their := Lock(c.T, c.Other, c.ctx, "theirs")
	mine := Lock(c.T, c.Locker, c.ctx, "mine")
	n := 0
	refused := func(key string, want error, wait time.Duration, call func() error) {
		c.T.Helper()
		err := call()
		require.Error(c.T, err)
		if want != nil {
			require.ErrorIs(c.T, err, want)
		}
		n++
		e := await[holdfast.RefusedEvent](c, s, n)[n-1]
		require.Equal(c.T, key, e.Key)
		require.Equal(c.T, err, e.Err)
		require.GreaterOrEqual(c.T, e.Waited, wait)
		require.Less(c.T, e.Waited, 10*time.Second)
	}
	try := func(key string) func() error {
		return func() error { _, err := c.Locker.TryLock(c.ctx, key); return err }
	}
	refused("theirs", holdfast.ErrNotAcquired, 0, try("theirs"))
	refused("mine", holdfast.ErrNotAcquired, 0, try("mine"))
	refused("", nil, 0, try(""))
	refused("theirs", holdfast.ErrNotAcquired, time.Second, func() error {
		_, err := c.Locker.TryLockFor(c.ctx, "theirs", time.Second)
		return err
	})
	refused("mine", holdfast.ErrNotAcquired, pause, func() error {
		return c.Locker.Do(c.ctx, "mine", unreachable(c.T), holdfast.WaitAtMost(pause))
	})
	refused("mine", nil, 0, func() error {
		_, err := c.Locker.Lock(mine.Bind(c.ctx), "mine", holdfast.MaxHold(time.Hour))
		return err
	})
	waiter := c.queue(c.Locker, "mine")
	refused("mine", holdfast.ErrQueueFull, 0, func() error { return c.Locker.Do(c.ctx, "mine", unreachable(c.T)) })
	c.unlock(mine)
	c.unlock(Got(c.T, waiter))
	c.unlock(their)
	require.Empty(c.T, of[holdfast.OutageBeganEvent](s))
	c.away()
	defer c.Proxy.Refuse(false)
	Await(c.T, func() bool { // connections may be found dead only now
		var err error
		refused("k", nil, 0, func() error { err = try("k")(); return err })
		return err != nil && strings.Contains(err.Error(), holdfast.ErrUnavailable.Error())
	})
	require.NoError(c.T, c.Locker.Close())
	require.ErrorIs(c.T, try("k")(), holdfast.ErrClosed) // nothing is told any more
	require.Len(c.T, of[holdfast.RefusedEvent](s), n)
	require.Len(c.T, of[holdfast.AcquiredEvent](s), 2)
	require.Len(c.T, of[holdfast.ReleasedEvent](s), 2)
}

// A caller that leaves has nothing, and does not show that Redis is away.
func observeGaveUp(c *harness) {
	s := c.observed(defaults)
	hook, held := Holding("acquire")
	c.Proxy.OnReply(hook)
	ctx, cancel := context.WithCancel(c.ctx)
	call := GoLock(c.Locker, ctx, "k")
	Within(c.T, held)
	cancel()
	err := Within(c.T, call).Err
	require.ErrorIs(c.T, err, context.Canceled)
	c.Proxy.OnReply(nil)
	c.Proxy.Release()
	c.Tidy("k")
	c.unlock(Lock(c.T, c.Locker, c.ctx, "k"))
	require.Equal(c.T, []string{"refused k", "acquired k by call", "released k"}, c.told(s))
	require.Equal(c.T, err, of[holdfast.RefusedEvent](s)[0].Err)
}

// At a renewal, at Unlock, or by the cap.
func observeLost(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	c.Other = c.Kind.Open(c.T, c.Server.Client(c.T), Options{Lease: 6 * time.Second})
	n := 0
	lost := func(l *holdfast.Lease) {
		c.T.Helper()
		n++
		e := await[holdfast.LostEvent](c, s, n)[n-1]
		require.Equal(c.T, l.Key(), e.Key)
		require.Positive(c.T, e.Held)
		require.Equal(c.T, l.Err(), e.Err)
		require.ErrorIs(c.T, e.Err, holdfast.ErrLost)
		require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	}
	force := func(key string) {
		_, err := c.Other.ForceUnlock(c.ctx, key)
		require.NoError(c.T, err)
	}
	l := Lock(c.T, c.Locker, c.ctx, "at a renewal")
	force(l.Key())
	lost(l)
	lost(Lock(c.T, c.Locker, c.ctx, "capped", holdfast.MaxHold(100*time.Millisecond)))
	l = Lock(c.T, c.Locker, c.ctx, "at Unlock")
	force(l.Key())
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	require.Equal(c.T, []string{
		"acquired at a renewal by call", "lost at a renewal", "acquired capped by call", "lost capped",
		"acquired at Unlock by call", "lost at Unlock",
	}, c.told(s, "holdfast"))
}

func observeRenewed(c *harness) {
	const lease, late = 6 * time.Second, 300 * time.Millisecond // no reply takes so long that the renewal is repeated
	s := c.observed(Options{Lease: lease})
	l := Lock(c.T, c.Locker, c.ctx, "k")
	fixed := Lock(c.T, c.Locker, c.ctx, "fixed", holdfast.FixedLease(time.Minute))
	confirmed := func(n int) (all []holdfast.RenewedEvent) {
		Await(c.T, func() bool {
			all = slices.DeleteFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err != nil })
			return len(all) >= n
		})
		return all
	}
	for _, e := range confirmed(1) {
		require.Equal(c.T, "k", e.Key)
		require.Less(c.T, e.Late, lease)
	}
	c.Proxy.SetDelay(0, late)
	n := len(confirmed(0))
	slow := confirmed(n + 2)[n+1] // the one before may have been under way
	require.GreaterOrEqual(c.T, slow.Late, late-lease/30)
	require.Less(c.T, slow.Late, lease)
	c.Proxy.SetDelay(0, 0)
	c.unlock(l)
	c.unlock(fixed)
	require.Len(c.T, c.told(s, "holdfast"), 4)
}

// The server stands still while a call waits.
func observeOutage(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	c.unlock(Lock(c.T, c.Locker, c.ctx, "k"))
	c.Server.Pause()
	began := time.Now()
	waits := []<-chan Acquired{GoLock(c.Locker, c.ctx, "k"), GoLock(c.Locker, c.ctx, "another")}
	await[holdfast.OutageBeganEvent](c, s, 1)
	require.Empty(c.T, of[holdfast.OutageEndedEvent](s))
	c.Server.Resume()
	for _, w := range waits {
		c.unlock(Got(c.T, w))
	}
	c.told(s)
	outage(c, s, time.Since(began))
}

// outage requires one outage, which has ended.
func outage(c *harness, s *seen, atMost time.Duration) {
	c.T.Helper()
	b, e := of[holdfast.OutageBeganEvent](s), of[holdfast.OutageEndedEvent](s)
	require.Len(c.T, b, 1)
	require.Len(c.T, e, 1)
	require.Error(c.T, b[0].Err)
	require.Equal(c.T, b[0].Server, e[0].Server)
	require.Equal(c.T, c.Kind.Cluster, b[0].Server != "")
	require.Positive(c.T, e[0].Lasted)
	require.Less(c.T, e[0].Lasted, atMost)
}

// Only renewals are sent.
func observeOutageHeld(c *harness) {
	s := c.observed(Options{Lease: 6 * time.Second})
	l := Lock(c.T, c.Locker, c.ctx, "k")
	c.Server.Pause()
	began := time.Now()
	await[holdfast.OutageBeganEvent](c, s, 1)
	failed := await[holdfast.RenewedEvent](c, s, 1)[0]
	require.Equal(c.T, "k", failed.Key)
	require.ErrorIs(c.T, failed.Err, holdfast.ErrUnknown)
	require.Positive(c.T, failed.Late)
	c.Server.Resume()
	await[holdfast.OutageEndedEvent](c, s, 1)
	Await(c.T, func() bool {
		return slices.ContainsFunc(of[holdfast.RenewedEvent](s), func(e holdfast.RenewedEvent) bool { return e.Err == nil })
	})
	c.unlock(l)
	require.Equal(c.T, []string{"acquired k by call", "released k"}, c.told(s, "holdfast"))
	outage(c, s, time.Since(began))
}

// Close releases what is held.
func observeClose(c *harness) {
	s := c.observed(defaults)
	outer := Lock(c.T, c.Locker, c.ctx, "k")
	Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	waiter := c.queue(c.Locker, "k")
	time.Sleep(pause)
	told := c.told(s, "refused") // perhaps too late to be told
	require.ErrorIs(c.T, Within(c.T, waiter).Err, holdfast.ErrClosed)
	require.Equal(c.T, []string{
		"acquired k by call", "acquired k by re-entry", "queue k 1", "queue k 0", "released k", "released k",
	}, told)
	for _, r := range of[holdfast.ReleasedEvent](s) {
		require.ErrorIs(c.T, r.Err, holdfast.ErrClosed)
		require.GreaterOrEqual(c.T, r.Held, pause)
	}
	require.ErrorIs(c.T, outer.Unlock(c.ctx), holdfast.ErrClosed)
}

// A panic is logged once, and later events are told.
func observePanic(c *harness) {
	var logs redistest.Log
	var called atomic.Int64
	c.Locker = c.Kind.Open(c.T, c.Client, Options{
		Logger: slog.New(slog.NewTextHandler(&logs, nil)),
		Observer: &holdfast.Observer{
			Acquired: func(holdfast.AcquiredEvent) { called.Add(1); panic("canary") },
			Released: func(holdfast.ReleasedEvent) { called.Add(1); panic("canary") },
		},
	})
	for range 3 {
		c.unlock(Lock(c.T, c.Locker, c.ctx, "k"))
	}
	require.NoError(c.T, c.Locker.Close())
	require.EqualValues(c.T, 6, called.Load())
	require.Equal(c.T, 1, strings.Count(logs.String(), "observer panicked"), logs.String())
	require.Contains(c.T, logs.String(), "panic=canary")
}

// An observer that never returns holds up neither locks nor Close; what it misses is counted.
func observeBlocked(c *harness) {
	const calls = 6000
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	var s seen
	o := s.observer()
	told := o.Acquired
	o.Acquired = func(e holdfast.AcquiredEvent) {
		told(e)
		Poke(entered)
		<-leave
	}
	var err error
	c.Locker, err = c.Kind.New(c.Client, Options{Observer: o, Lease: Long}) // whose many errors nobody looks through
	require.NoError(c.T, err)
	c.T.Cleanup(func() { _ = c.Locker.Close() })
	l := Lock(c.T, c.Locker, c.ctx, "k")
	Within(c.T, entered)
	for range calls { // without Redis
		if _, err := c.Locker.TryLock(c.ctx, "k"); err == nil {
			require.FailNow(c.T, "acquired")
		}
	}
	c.unlock(l)
	close(leave)
	d := await[holdfast.DroppedEvent](c, &s, 1)[0]
	require.Equal(c.T, holdfast.DroppedEvent{Refused: d.Refused, Released: 1}, d)
	c.unlock(Lock(c.T, c.Locker, c.ctx, "k"))
	require.NoError(c.T, c.Locker.Close())
	require.Equal(c.T, calls, len(of[holdfast.RefusedEvent](&s))+d.Refused)
	require.Len(c.T, of[holdfast.AcquiredEvent](&s), 2)
	require.Len(c.T, of[holdfast.ReleasedEvent](&s), 1)

	leave = make(chan struct{})
	c.Locker = c.Kind.Open(c.T, c.Client, Options{Observer: o})
	Lock(c.T, c.Locker, c.ctx, "k")
	Within(c.T, entered)
	closed := make(chan error, 1)
	go func() { closed <- c.Locker.Close() }()
	require.NoError(c.T, Within(c.T, closed))
	c.free("k")
	require.Len(c.T, of[holdfast.ReleasedEvent](&s), 1)
	close(leave) // the goroutine ends now, and tells nothing more
}

// An observer may use its locker, and close it.
func observeLocks(c *harness) {
	var s seen
	o := s.observer()
	told, first := o.Acquired, true
	telling, closed := &TellingContext{Context: c.ctx, Waiting: make(chan struct{})}, make(chan error, 2)
	o.Acquired = func(e holdfast.AcquiredEvent) {
		told(e)
		if !first {
			return
		}
		first = false
		l, err := c.Locker.Lock(telling, e.Key) // waits for the one that it is told of
		if err == nil {
			err = l.Unlock(c.ctx)
		}
		closed <- err
		closed <- c.Locker.Close()
	}
	c.Locker = c.Kind.Open(c.T, c.Client, Options{Observer: o})
	l := Lock(c.T, c.Locker, c.ctx, "k")
	Within(c.T, telling.Waiting)
	c.unlock(l)
	require.NoError(c.T, Within(c.T, closed))
	require.NoError(c.T, Within(c.T, closed))
}

// Whatever happens to calls and leases, each entry that began ends once.
func observeBalance(c *harness) {
	s := c.observed(Options{Lease: time.Second, MaxWaiters: 6})
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	keys := []string{"a", "b", "c"}
	var all sync.WaitGroup
	often := func(do func(n int, key string)) {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				do(n, keys[rand.N(len(keys))])
			}
		})
	}
	end := func(l *holdfast.Lease, err error) {
		if err == nil {
			time.Sleep(rand.N(2 * time.Millisecond))
			_ = l.Unlock(ctx)
		}
	}
	for range 12 {
		often(func(n int, key string) {
			short, cancel := context.WithTimeout(ctx, rand.N(5*time.Millisecond))
			defer cancel()
			switch n % 6 {
			case 0:
				end(c.Locker.TryLock(ctx, key))
			case 1:
				end(c.Locker.Lock(short, key)) // often gives up, perhaps just when it gets the key
			case 2:
				end(c.Locker.TryLockFor(ctx, key, rand.N(5*time.Millisecond), holdfast.MaxHold(time.Millisecond)))
			default:
				_ = c.Locker.Do(ctx, key, func(ctx context.Context) error {
					end(c.Locker.Lock(ctx, key))
					return nil
				})
			}
		})
	}
	often(func(_ int, key string) { end(c.Other.Lock(ctx, key)) })
	often(func(_ int, key string) {
		time.Sleep(pause)
		_, _ = c.Other.ForceUnlock(ctx, key)
	})
	often(func(int, string) {
		time.Sleep(5 * pause)
		c.Proxy.Cut()
	})
	Await(c.T, func() bool {
		return len(of[holdfast.AcquiredEvent](s)) > 100 && len(of[holdfast.LostEvent](s)) > 0
	})
	_ = c.Locker.Close() // in the middle of it
	stop()
	all.Wait()

	d := holdfast.DroppedEvent{}
	for _, one := range of[holdfast.DroppedEvent](s) {
		d.Acquired, d.Released, d.Lost = d.Acquired+one.Acquired, d.Released+one.Released, d.Lost+one.Lost
	}
	acquired, released := of[holdfast.AcquiredEvent](s), of[holdfast.ReleasedEvent](s)
	lost := len(of[holdfast.LostEvent](s))
	require.Equal(c.T, len(acquired)+d.Acquired, len(released)+d.Released+lost+d.Lost)
	if d != (holdfast.DroppedEvent{}) {
		return
	}
	held := map[string]int{} // by key
	for _, e := range acquired {
		held[e.Key]++
	}
	for _, e := range released {
		held[e.Key]--
	}
	for _, e := range of[holdfast.LostEvent](s) {
		held[e.Key]--
	}
	require.Equal(c.T, map[string]int{"a": 0, "b": 0, "c": 0}, held)
	queue := map[string]int{}
	for _, e := range of[holdfast.QueueEvent](s) {
		queue[e.Key] = e.Waiting
		require.LessOrEqual(c.T, e.Waiting, 6)
	}
	for key, n := range queue {
		require.Zero(c.T, n, key)
	}
}
