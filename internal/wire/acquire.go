package wire

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/cluster"
)

var (
	acquire    = load("acquire")
	acquireAll = load("acquire_all")
)

// NoExpiry is the remaining lease of a key that never expires. None of ours is like that; another
// program may have set it so.
const NoExpiry time.Duration = -1

// AcquireReply is the answer to an acquire: OK, Gone, or held by another for Remaining.
type AcquireReply struct {
	// OK: the owner has held the key since this call. If the call was repeated, it may have
	// held it since an earlier one.
	OK bool
	// Gone: the owner will not get the key any more, as Release in doubt gave it up, or its hold
	// or its writer has ended. The next attempt needs a new owner.
	Gone bool
	// Remaining is what is left of the lease of another holder, at least 1 ms,
	// or NoExpiry.
	Remaining time.Duration
	// Fence and FenceEnd are the first and the last number reserved for this
	// hold, if OK and with fencing.
	Fence, FenceEnd int64
	// Split: perhaps nobody holds the key: owners that asked a quorum at the same time have each
	// got some of its nodes. Never set by one node.
	Split bool
	// Holder is the only owner that a quorum met, or the one with so many nodes that no other can have the key.
	// "": there is none. Never set by one node.
	Holder string
	// Agreed is the number of permits on which others have agreed, if it is not ours; otherwise 0.
	Agreed int
	// Why says more about another holder, for errors: [errs.HeldBy], or what the nodes of a
	// quorum said. nil: it is not known whether there is one.
	Why error
}

// AcquireRequest is one hold that is asked for.
type AcquireRequest struct {
	Key, Owner string
	Lease      time.Duration
	Label      *string // of the owner, for people; nil: that of the Redis
	Fencing    Fencing
	Beside     string // the writer that calls, beside which a reader takes a read/write lock; "": none
}

// Acquire takes a key for an owner if it is free, for one lease from now. Otherwise it
// changes nothing. With fencing, the hold gets fence numbers that are larger than all numbers of
// earlier holds of the key.
//
// It may be repeated when its reply is lost: a repeat that finds the owner's
// hold leaves it as it is, so the lease counts from before the first attempt; its numbers are
// larger than those of the attempts before it.
// After an Unknown outcome that is not followed up by a repeat, Release in doubt undoes
// what may have been done.
func (r *Redis) Acquire(ctx context.Context, a AcquireRequest) (AcquireReply, error) {
	return r.runAcquire(ctx, a.Fencing.parser(), acquire, r.acquireInput(forOne(), a))
}

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each. All of
// them have fencing or none.
func (r *Redis) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[AcquireReply]) error {
	return runEach(ctx, r, acquire, asks, r.acquireInput, results, asks[0].Fencing.parser())
}

func (r *Redis) acquireInput(in input, a AcquireRequest) input {
	in.keys, in.args = append(in.keys, a.Key, tombstone(a.Key, a.Owner)), append(in.args, a.Owner, millis(a.Lease), r.firstEntry(a.Label))
	return in.fenced(a)
}

// runAcquire is write for an acquire, whose reply is for parse.
func (r *Redis) runAcquire(ctx context.Context, parse parser[AcquireReply], s script, in input) (AcquireReply, error) {
	m, shortfall, err := r.write(ctx, s, len(in.keys), append(in.keys, in.args...)...)
	a, err := parse(m, err)
	if err == nil && a.OK {
		err = shortfall
	}
	return a, err
}

// AcquireAll takes several keys in one call, for one lease from now; if one of them is not free it
// changes nothing, and OK is false. The lease and the label are those of the first. OK is also false if
// they must be of one slot and are of several: without a call where [Redis.BySlot] says so. It
// may be repeated like Acquire; Release in doubt undoes each.
func (r *Redis) AcquireAll(ctx context.Context, asks []AcquireRequest) (ok bool, err error) {
	args := make([]string, 0, 3*len(asks)+2)
	for _, a := range asks {
		if r.BySlot() && cluster.Slot(a.Key) != cluster.Slot(asks[0].Key) {
			return false, nil
		}
		args = append(args, a.Key, tombstone(a.Key, a.Owner))
	}
	args = append(args, millis(asks[0].Lease), r.firstEntry(asks[0].Label))
	for _, a := range asks {
		args = append(args, a.Owner)
	}
	m, shortfall, err := r.write(ctx, acquireAll, 2*len(asks), args...)
	if crossed(err) {
		return false, nil
	}
	refused, err := integer(m, err)
	if err == nil && (refused < 0 || refused > int64(len(asks))) {
		err = errReply
	}
	if err == nil && refused == 0 {
		err = shortfall
	}
	return err == nil && refused == 0, err
}

// Fencing says how fence numbers are handed out.
type Fencing struct {
	// Reserve is how many numbers to reserve for a hold, up to 999 999 999; 0: there is no
	// fencing. Where the counter runs ahead of the server's clock it gets fewer, at least one.
	Reserve int64
	// Expiry is for how long the counter outlives its last acquire, in whole
	// milliseconds; 0: forever. A counter without expiry keeps none.
	Expiry time.Duration
}

// parser reads the reply to an acquire.
func (f Fencing) parser() parser[AcquireReply] {
	if f.Reserve == 0 {
		return parseAcquired
	}
	return parseFenced
}

// fenced adds to the input what a hold is sent for its fence numbers, if there are any.
func (in input) fenced(a AcquireRequest) input {
	if f := a.Fencing; f.Reserve != 0 {
		in.keys, in.args = append(in.keys, counter(a.Key)), append(in.args, decimal(f.Reserve), millis(f.Expiry))
	}
	return in
}
