package scripts

import (
	"cmp"
	"context"
)

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each.
func (f *Fair) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[Acquired]) error {
	in := forMany(len(asks), fairKeys+1, 4)
	for _, a := range asks {
		in = f.acquireInput(in, a)
	}
	return runEach(ctx, f.redis, fairAcquireEach, len(asks), in, results, parseAcquired)
}

func (f *Fair) acquireInput(in input, a AcquireRequest) input {
	return f.about(in, checkHold(a.Key, a.Owner, a.Lease), a.Key, []string{a.Owner}, a.Owner, millis(a.Lease), f.redis.one)
}

// KeyOwner is a lock and its holder, or an owner that wants to be.
type KeyOwner struct{ Key, Owner string }

// FairHold is a hold of a lock, and the last fence number used of it if reserved ones are left
// over, otherwise 0.
type FairHold struct {
	KeyOwner
	LastFence int64
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one
// for each. The holds have served no run, and nothing about them is in doubt.
func (f *Fair) ReleaseEach(ctx context.Context, holds []FairHold, results []Result[FairReleased]) error {
	in := forMany(len(holds), fairKeys, 3)
	for _, h := range holds {
		in = f.releaseInput(in, h, nil)
	}
	return runEach(ctx, f.redis, fairReleaseEach, len(holds), in, results, parsePassed)
}

func (f *Fair) releaseInput(in input, h FairHold, stones []string) input {
	return f.about(in, cmp.Or(CheckKey(h.Key), checkLastFence(h.LastFence)), h.Key, stones, h.Owner, decimal(h.LastFence))
}

// LeaveEach does what Leave does for each of holds by itself, and fills results, one for
// each. A call of each may still arrive.
func (f *Fair) LeaveEach(ctx context.Context, holds []KeyOwner, results []Result[FairReleased]) error {
	in := forMany(len(holds), fairKeys+1, 2)
	for _, h := range holds {
		in = f.about(in, CheckKey(h.Key), h.Key, []string{h.Owner}, h.Owner)
	}
	return runEach(ctx, f.redis, fairLeaveEach, len(holds), in, results, parsePassed)
}
