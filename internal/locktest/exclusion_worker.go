package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/hall"
)

// The shape of an exclusion run.
const (
	exclusionLease   = 300 * time.Millisecond
	exclusionWorkers = 16 // goroutines of a process
	exclusionKeys    = 4
)

func exclusionKey(i int) string { return "key" + strconv.Itoa(i) }

func init() { registerChild("exclusion", exclusionWorker) }

// exclusionWorker takes and gives back few keys on many goroutines until it is
// told to stop, and records each lease.
// Args: the address of Redis, the file of records, the name of the process, the
// seed, "broken" for a lock that does not exclude.
func exclusionWorker(d Door, p *Parent) error {
	addr, path, process := p.Args[0], p.Args[1], p.Args[2]
	seed, err := strconv.ParseUint(p.Args[3], 10, 64)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	if slices.Contains(p.Args, "broken") {
		d = broken(d)
	}
	client, err := p.Client(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	o := Options{Lease: exclusionLease, Fencing: true, Stale: exclusionLease / 3, FirstLease: exclusionLease / 3}
	if none := time.Duration(0); random.IntN(2) == 0 {
		o.Handover = &none
	}
	locker, err := d.New(client, o)
	if err != nil {
		return err
	}
	return compete(p, locker, random, 2*exclusionLease, path, process)
}

// compete has the goroutines of a process take leases, hold each for the given time
// at most and record them, until the parent says stop. From "still" to the parent's next word they take none.
func compete(p *Parent, locker Locker, random *rand.Rand, longest time.Duration, path, process string) error {
	rec, err := newRecorder(path, process)
	if err != nil {
		return err
	}
	defer rec.file.Close()
	p.Say("ready")

	ctx, stop := context.WithCancel(context.Background())
	errs := make(chan error, exclusionWorkers)
	var workers sync.WaitGroup
	var door gate
	door.open(ctx)
	for range exclusionWorkers {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		workers.Go(func() {
			for ctx.Err() == nil {
				if err := oneLease(ctx, &door, locker, rec, random, longest); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for p.Hear() == "still" {
		door.close()
		p.Say("still")
		p.Hear()
		door.open(ctx)
	}
	stop()
	workers.Wait()
	if err := locker.Close(); err != nil {
		return err
	}
	close(errs)
	return <-errs
}

// oneLease takes a lease in one of the ways that there are, holds it for a
// while and gives it back. Only what a fault may bring about is no error.
func oneLease(ctx context.Context, door *gate, locker Locker, rec *recorder, random *rand.Rand, longest time.Duration) error {
	l, err := take(door, locker, random)
	if err != nil {
		if expected(err) {
			return nil
		}
		return fmt.Errorf("lock: %w", err)
	}
	r := rec.granted(l)
	r.hold(holdTime(random, longest))
	r.ends()
	err = l.Unlock(ctx)
	if errors.Is(err, hall.ErrLost) {
		r.lost()
		return nil
	}
	if err != nil && !errors.Is(err, hall.ErrUnknown) {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

func take(door *gate, locker Locker, random *rand.Rand) (Lease, error) {
	ctx, leave := door.enter()
	defer leave()
	key := exclusionKey(random.IntN(exclusionKeys))
	var terms []Call
	if random.IntN(10) == 0 {
		terms = append(terms, Call{FixedLease: exclusionLease / 2})
	}
	wait, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
	defer cancel()
	switch random.IntN(8) {
	case 0:
		return locker.TryLock(ctx, key, terms...)
	case 1:
		return locker.TryLockFor(ctx, key, time.Duration(random.IntN(50))*time.Millisecond, terms...)
	default:
		return locker.Lock(wait, key, terms...)
	}
}

// gate lets a process be told not to take locks for a while.
type gate struct {
	inside sync.RWMutex // held for reading by those who are taking one
	ctx    context.Context
	cancel context.CancelFunc
}

func (g *gate) enter() (ctx context.Context, leave func()) {
	g.inside.RLock()
	return g.ctx, g.inside.RUnlock
}

// open lets those in who wait.
func (g *gate) open(ctx context.Context) {
	if g.cancel != nil {
		defer g.inside.Unlock()
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
}

// close has those inside give up, and returns when they have.
func (g *gate) close() {
	g.cancel()
	g.inside.Lock()
}

// expected reports whether a fault, or the end of a wait, explains the error.
func expected(err error) bool {
	for _, known := range []error{
		hall.ErrNotAcquired, hall.ErrUnavailable, hall.ErrUnknown, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// holdTime is mostly nothing or little, sometimes longer than the lease.
func holdTime(random *rand.Rand, longest time.Duration) time.Duration {
	most := longest
	switch n := random.IntN(1000); {
	case n < 700:
		return 0
	case n < 900:
		most = 3 * time.Millisecond
	case n < 997:
		most = 20 * time.Millisecond
	}
	return time.Duration(random.Int64N(int64(most)))
}
