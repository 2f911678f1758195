package exclusion

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

const exclusionWorkers = 16 // goroutines of a process

func Key(i int) string { return "key" + strconv.Itoa(i) }

func keyNames(n int) (all []string) {
	for i := range n {
		all = append(all, Key(i))
	}
	return all
}

func init() { locktest.RegisterChild("exclusion", exclusionWorker) }

// orders are what a process is told when it starts.
type orders struct {
	Addrs     []string // of servers or Sentinels
	MasterSet string
	Ways      map[string]string // the addresses that the process dials in place of the servers'
	Lease     time.Duration
	Longest   time.Duration // and the next: see HoldTime
	Long      int
	Keys      int
	File      string // of records
	Process   string
	Seed      uint64
	Reads     bool // two of three leases are those of readers
	Broken    bool // the lock tells of no loss; of a control
}

// client opens a client, as soon as there is a server.
func (o orders) client() rueidis.Client {
	options := rueidis.ClientOption{InitAddress: o.Addrs, DisableCache: true}
	options.Sentinel.MasterSet, options.Sentinel.TopologyRefreshInterval = o.MasterSet, 5*time.Second
	options.ClusterOption.ShardsRefreshInterval = time.Second
	options.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", cmp.Or(o.Ways[addr], addr))
	}
	for {
		client, err := rueidis.NewClient(options)
		if err == nil {
			return client
		}
		time.Sleep(10 * time.Millisecond) // its servers may be away now
	}
}

// exclusionWorker takes and gives back few keys on many goroutines until it is
// told to stop, and records each lease.
func exclusionWorker(k locktest.Kind, p *locktest.Parent) error {
	var orders orders
	if err := json.Unmarshal([]byte(p.Args[0]), &orders); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(orders.Seed, 0))
	if orders.Broken {
		k = broken(k)
	}
	client := orders.client()
	defer client.Close()
	o := locktest.Options{Lease: orders.Lease, Fencing: true, WaiterTTL: min(orders.Lease/3, 500*time.Millisecond), GrantLease: orders.Lease / 3}
	if none := time.Duration(0); random.IntN(2) == 0 {
		o.Handover = &none
	}
	locker, err := k.New(client, o)
	if err != nil {
		return err
	}
	halves := map[bool]holdfast.Locker{false: locker}
	if orders.Reads {
		halves[true] = k.Readers(locker)
	}
	w, err := NewWork(func(reads bool) holdfast.Locker { return halves[reads] }, orders.errand, orders.File, orders.Process)
	if err != nil {
		return err
	}
	p.Say("ready")
	w.Begin(random)
	p.Hear() // stop
	return errors.Join(w.End(), locktest.Close(locker))
}

// Errand is a lease to be taken.
type Errand struct {
	Key     string
	Reads   bool          // it is a reader's
	Fixed   time.Duration // 0: it is renewed
	MaxHold time.Duration // 0: without end
	Hold    time.Duration // for how long it is held, if it lasts
}

func (e Errand) terms() (terms []holdfast.LockOption) {
	if e.Fixed != 0 {
		terms = append(terms, holdfast.FixedLease(e.Fixed))
	}
	if e.MaxHold != 0 {
		terms = append(terms, holdfast.MaxHold(e.MaxHold))
	}
	return terms
}

func (o orders) errand(random *rand.Rand, _ int) Errand {
	e := Errand{Key: Key(random.IntN(o.Keys)), Reads: o.Reads && random.IntN(3) > 0, Hold: HoldTime(random, o.Longest, o.Long)}
	if random.IntN(10) == 0 {
		e.Fixed = o.Lease / 2
	}
	return e
}

// Work is that of the goroutines of a process, which take leases, hold and record
// them.
type Work struct {
	locker func(reads bool) holdfast.Locker           // the one of now
	errand func(random *rand.Rand, worker int) Errand // the next
	rec    *Recorder
	Gate   Gate
	Ctx    context.Context
	stop   context.CancelFunc
	errs   chan error
	all    sync.WaitGroup
}

func NewWork(locker func(reads bool) holdfast.Locker, next func(*rand.Rand, int) Errand, path, process string) (*Work, error) {
	rec, err := NewRecorder(path, process)
	w := &Work{locker: locker, errand: next, rec: rec, errs: make(chan error, exclusionWorkers)}
	w.Ctx, w.stop = context.WithCancel(context.Background())
	w.Gate.Open(w.Ctx)
	return w, err
}

func (w *Work) Begin(random *rand.Rand) {
	for i := range exclusionWorkers {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		w.all.Go(func() {
			for w.Ctx.Err() == nil {
				if err := w.oneLease(w.errand(random, i), random); err != nil {
					w.errs <- err
					return
				}
			}
		})
	}
}

func (w *Work) End() error {
	w.stop()
	w.all.Wait()
	close(w.errs)
	return errors.Join(<-w.errs, w.rec.File.Close())
}

// oneLease takes a lease in one of the ways that there are, holds it for a
// while and gives it back. Only what a fault may bring about is no error.
func (w *Work) oneLease(e Errand, random *rand.Rand) error {
	called := locktest.Clock()
	l, err := w.take(e, random)
	if err != nil {
		if expected(err) {
			return nil
		}
		return fmt.Errorf("lock: %w", err)
	}
	r := w.rec.Granted(l, e.Reads, called)
	r.fixed = e.Fixed != 0
	r.Hold(w.Ctx, e.Hold)
	r.Ends()
	err = l.Unlock(w.Ctx)
	if errors.Is(err, holdfast.ErrLost) {
		r.lost()
		return nil
	}
	if err != nil && !errors.Is(err, holdfast.ErrUnknown) {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

func (w *Work) take(e Errand, random *rand.Rand) (*holdfast.Lease, error) {
	ctx, leave := w.Gate.enter()
	defer leave()
	wait, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
	defer cancel()
	locker := w.locker(e.Reads)
	switch random.IntN(8) {
	case 0:
		return locker.TryLock(ctx, e.Key, e.terms()...)
	case 1:
		return locker.TryLockFor(ctx, e.Key, time.Duration(random.IntN(50))*time.Millisecond, e.terms()...)
	default:
		return locker.Lock(wait, e.Key, e.terms()...)
	}
}

// Gate lets a process be told not to take locks for a while.
type Gate struct {
	inside sync.RWMutex // held for reading by callers that are taking one
	ctx    context.Context
	cancel context.CancelFunc
}

func (g *Gate) enter() (ctx context.Context, leave func()) {
	g.inside.RLock()
	return g.ctx, g.inside.RUnlock
}

// Open lets waiting callers in.
func (g *Gate) Open(ctx context.Context) {
	if g.cancel != nil {
		defer g.inside.Unlock()
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
}

// Close has those inside give up, and returns when they have.
func (g *Gate) Close() {
	g.cancel()
	g.inside.Lock()
}

// expected reports whether a fault, or the end of a wait, explains the error.
func expected(err error) bool {
	for _, known := range []error{
		holdfast.ErrNotAcquired, holdfast.ErrUnavailable, holdfast.ErrUnknown, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// HoldTime is usually zero or short, and so often of a thousand times as long as most.
func HoldTime(random *rand.Rand, most time.Duration, long int) time.Duration {
	switch n := random.IntN(1000); {
	case n < 700:
		return 0
	case n < 900:
		most = 3 * time.Millisecond
	case n < 1000-long:
		most = 20 * time.Millisecond
	}
	return time.Duration(random.Int64N(int64(most)))
}

// broken is a lock kind whose holders are never told that they have lost a lease, as the check
// of exclusion must find.
func broken(k locktest.Kind) locktest.Kind {
	return locktest.Kind{Name: "broken " + k.Name, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		l, err := k.New(client, o)
		return brokenLocker{l, o.Lease}, err
	}}
}

type brokenLocker struct {
	locktest.Locker
	lease time.Duration
}

func (l brokenLocker) Lock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	lease, err := l.Locker.Lock(ctx, key, c...)
	if err == nil && len(c) == 0 { // it is renewed
		untold := holdfast.NewLease(untold{lease, l.lease})
		lease = &untold
	}
	return lease, err
}

// untold is a lease that is never lost, as its holder sees it.
type untold struct {
	*holdfast.Lease
	lease time.Duration
}

func (untold) Done() <-chan struct{} { return nil }
func (untold) Err() error            { return nil }
func (u untold) Deadline() time.Time { return time.Now().Add(u.lease) }
