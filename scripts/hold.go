package scripts

import (
	"context"
	"strconv"
	"time"
)

// NoExpiry is the remaining lease of a key that never expires. None of ours is
// such; somebody else may have made it so.
const NoExpiry time.Duration = -1

// Acquired is the answer to an acquire: OK, Gone, or held by another for
// Remaining.
type Acquired struct {
	// OK: the owner holds the key, since this call or, when the call was a
	// repeated one, possibly since an earlier one.
	OK bool
	// Gone: the owner was given up by CleanUp and will not get the key any
	// more. The next attempt needs a new owner.
	Gone bool
	// Remaining is what is left of the lease of another holder, at least 1 ms,
	// or NoExpiry.
	Remaining time.Duration
	// Fence and FenceEnd are the first and the last number reserved for this
	// hold, if OK and by AcquireFenced.
	Fence, FenceEnd int64
	// Split: nobody may hold the key: those who asked a quorum at once have each
	// got a part of it. Why is what its nodes said, for errors. Never set by one
	// node.
	Split bool
	Why   error
}

// Acquire takes key for owner if it is free, for one lease from now. Else it
// changes nothing.
//
// It may be repeated when its reply is lost: a repeat that finds the owner's
// hold leaves it as it is, so the lease counts from before the first attempt.
// After an Unknown outcome that is not followed up by a repeat, CleanUp undoes
// what may have been done.
func (n *Node) Acquire(ctx context.Context, key, owner string, lease time.Duration) (Acquired, error) {
	if err := checkHold(key, owner, lease); err != nil {
		return Acquired{}, err
	}
	return parseAcquired(n.run(ctx, acquire, 2, key, tombstone(key, owner), owner, millis(lease)))
}

// AcquireAll takes all of keys at once, keys[i] for owners[i], for one lease from
// now; if one of them is not free it changes nothing, and OK is false. It may be
// repeated as Acquire; CleanUp undoes each.
func (n *Node) AcquireAll(ctx context.Context, keys, owners []string, lease time.Duration) (ok bool, err error) {
	if len(keys) == 0 || len(owners) != len(keys) {
		return false, refuse("%d keys and %d owners: not as many of each, or none", len(keys), len(owners))
	}
	args := make([]string, 0, 3*len(keys)+1)
	for i, key := range keys {
		if err := checkHold(key, owners[i], lease); err != nil {
			return false, err
		}
		args = append(args, key, tombstone(key, owners[i]))
	}
	args = append(append(args, millis(lease)), owners...)
	refused, err := integer(n.run(ctx, acquireAll, 2*len(keys), args...))
	if err == nil && (refused < 0 || refused > int64(len(keys))) {
		err = errReply
	}
	return err == nil && refused == 0, err
}

// Fencing says how fence numbers are handed out.
type Fencing struct {
	// Reserve is how many numbers to reserve for a hold, 1 to 999 999 999. Where
	// the counter runs ahead of the server's clock it gets fewer, at least one.
	Reserve int64
	// Expiry is for how long the counter outlives its last acquire, in whole
	// milliseconds; 0: for ever. A counter without expiry keeps none.
	Expiry time.Duration
}

// AcquireFenced does as Acquire and reserves fence numbers that are larger than
// all numbers of earlier holds of key. A repeat that finds the owner's hold gets
// larger numbers than the attempts before it.
func (n *Node) AcquireFenced(ctx context.Context, key, owner string, lease time.Duration, f Fencing) (Acquired, error) {
	if err := checkHold(key, owner, lease); err != nil {
		return Acquired{}, err
	}
	if f.Reserve < 1 || f.Reserve > 999_999_999 {
		return Acquired{}, refuse("fence numbers to reserve: %d is not from 1 to 999999999", f.Reserve)
	}
	if f.Expiry < 0 || f.Expiry%time.Millisecond != 0 {
		return Acquired{}, refuse("expiry of the fence counter: %v is not a whole number of milliseconds from 0", f.Expiry)
	}
	return parseAcquiredFenced(n.run(ctx, acquireFenced, 3, key, tombstone(key, owner), counter(key),
		owner, millis(lease), decimal(f.Reserve), millis(f.Expiry)))
}

// Recount sets the count of the owner's hold to entries, when a nested entry
// has begun or one of several has ended. It never touches the expiry and may be
// repeated. If the key is not the owner's, ours is false and nothing changes.
func (n *Node) Recount(ctx context.Context, key, owner string, entries int) (ours bool, err error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	if entries < 1 || entries > 999_999_999 {
		return false, refuse("entries: %d is not from 1 to 999999999", entries)
	}
	return parseBool(n.run(ctx, recount, 1, key, owner, decimal(int64(entries))))
}

// Released is the answer to a release.
type Released struct {
	// Ours: the hold was the owner's and has ended.
	Ours bool
	// Listeners is how many subscribers were told, on this node; -1 if Redis
	// refused the message. 0 unless Ours.
	Listeners int
}

// Release ends the owner's hold, whatever its count, and announces it on the
// key's channel. If the hold is not there, Ours is false and nothing changes.
// It works on a Redis that is out of memory and may be repeated; a repeat
// cannot tell its own success from a loss.
//
// lastFence, if not 0, is the last number used of those that AcquireFenced
// reserved for this very hold: the others are given back.
func (n *Node) Release(ctx context.Context, key, owner string, lastFence int64) (Released, error) {
	if err := CheckKey(key); err != nil {
		return Released{}, err
	}
	if lastFence < 0 || lastFence > 9_999_999_999_999_999 {
		return Released{}, refuse("last fence: %d is not from 0 to 9999999999999999", lastFence)
	}
	if lastFence == 0 {
		return parseReleased(n.run(ctx, release, 1, key, owner, Channel(key)))
	}
	return parseReleased(n.run(ctx, release, 2, key, counter(key), owner, Channel(key), decimal(lastFence)))
}

// CleanUp gives up an owner after an acquire of unknown outcome: it ends its
// hold as Release does, and for a minute an acquire of that owner that arrives
// late finds itself Gone. Ours tells whether there was a hold. It may be
// repeated.
func (n *Node) CleanUp(ctx context.Context, key, owner string) (Released, error) {
	if err := CheckKey(key); err != nil {
		return Released{}, err
	}
	return parseReleased(n.run(ctx, cleanUp, 2, key, tombstone(key, owner), owner, Channel(key)))
}

func checkHold(key, owner string, lease time.Duration) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if owner == "" {
		return refuse("owner is empty")
	}
	return CheckLease(lease)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return decimal(d.Milliseconds()) }
