package scripts

import (
	"cmp"
	"context"
)

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each.
func (f *Fair) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[AcquireReply]) error {
	in := forMany(len(asks), fairKeys+1, 4)
	for _, a := range asks {
		in = f.acquireInput(in, a)
	}
	return runEach(ctx, f.redis, fairAcquireEach, len(asks), in, results, parseAcquired)
}

func (f *Fair) acquireInput(in input, a AcquireRequest) input {
	return f.about(in, checkHold(a.Key, a.Owner, a.Lease), a.Key, []string{a.Owner}, a.Owner, millis(a.Lease), f.redis.one)
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one
// for each. The holds have served no run, and nothing about them is in doubt.
func (f *Fair) ReleaseEach(ctx context.Context, holds []FairReleaseRequest, results []Result[FairReply]) error {
	in := forMany(len(holds), fairKeys, 3)
	for _, h := range holds {
		if h.Doubt || len(h.Served) > 0 {
			return errUneven
		}
		in = f.releaseInput(in, h)
	}
	return runEach(ctx, f.redis, fairReleaseEach, len(holds), in, results, parsePassed)
}

var errUneven = refuse("not as many owners for each of several locks")

func (f *Fair) releaseInput(in input, h FairReleaseRequest) input {
	var stones []string
	if h.Doubt {
		stones = []string{h.Owner}
	}
	return f.about(in, cmp.Or(CheckKey(h.Key), checkLastFence(h.LastFence)), h.Key, stones, h.Owner, decimal(h.LastFence))
}

// LeaveEach does what Leave does for each of asks by itself, and fills results, one for each. Each
// names a single owner, in doubt.
func (f *Fair) LeaveEach(ctx context.Context, asks []LeaveRequest, results []Result[FairReply]) error {
	in := forMany(len(asks), fairKeys+1, 2)
	for _, l := range asks {
		if len(l.InDoubt) != 1 || len(l.Others) > 0 {
			return errUneven
		}
		in = f.about(in, CheckKey(l.Key), l.Key, l.InDoubt, l.InDoubt...)
	}
	return runEach(ctx, f.redis, fairLeaveEach, len(asks), in, results, parsePassed)
}
