package scripts

import "context"

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each.
func (f *Fair) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[Acquired]) error {
	keys, args := f.each(len(asks))
	for _, a := range asks {
		if err := checkHold(a.Key, a.Owner, a.Lease); err != nil {
			return err
		}
		keys = append(appendFairKeys(keys, a.Key), tombstone(a.Key, a.Owner))
		args = append(args, f.settings, a.Owner, millis(a.Lease), f.redis.one)
	}
	return invokeEach(ctx, f.redis, fairAcquireEach, len(asks), keys, args, results, parseAcquired)
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
	keys, args := f.each(len(holds))
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		keys = appendFairKeys(keys, h.Key)
		args = append(args, f.settings, h.Owner, decimal(h.LastFence))
	}
	return invokeEach(ctx, f.redis, fairReleaseEach, len(holds), keys, args, results, parsePassed)
}

// LeaveEach does what Leave does for each of holds by itself, and fills results, one for
// each. A call of each may still arrive.
func (f *Fair) LeaveEach(ctx context.Context, holds []KeyOwner, results []Result[FairReleased]) error {
	keys, args := f.each(len(holds))
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		keys = append(appendFairKeys(keys, h.Key), tombstone(h.Key, h.Owner))
		args = append(args, f.settings, h.Owner)
	}
	return invokeEach(ctx, f.redis, fairLeaveEach, len(holds), keys, args, results, parsePassed)
}

// each is room for the KEYS and the ARGV of a call for several locks.
func (f *Fair) each(locks int) (keys, args []string) {
	return make([]string, 0, (fairKeys+1)*locks), make([]string, 0, 4*locks)
}
