package wire

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/scripts"
)

var (
	release      = load("release")
	forceRelease = load("force_release")
)

// ReleaseReply is the answer to a release.
type ReleaseReply struct {
	// Ours: the hold was the owner's and has ended.
	Ours bool
	// Listeners is how many subscribers were notified, on this node; 0 unless Ours.
	Listeners int
}

// ReleaseRequest is a hold that is to end.
type ReleaseRequest struct {
	Key, Owner string
	Notify     bool  // notify the channel of a plain lock; false for a failed round of a quorum. The other kinds always notify
	Doubt      bool  // an acquire of the owner was not answered: for a minute, one that arrives late finds itself Gone
	LastFence  int64 // if not 0, nor in doubt: the last fence number that was used; those reserved after it are given back
}

// Release ends a hold with all its entries. If the hold is not there, Ours is false and nothing
// changes, except that an owner in doubt is given up all the same. It works on a Redis that is out of
// memory and may be repeated; a repeat cannot tell its own success from a loss.
func (r *Redis) Release(ctx context.Context, h ReleaseRequest) (ReleaseReply, error) {
	return parseReleased(r.run(ctx, release, releaseInput(forOne(), h, h.leavesMore())))
}

// more returns the key that a release needs for what it leaves, and what that is: a tombstone, or the last fence. If it leaves
// nothing more, the key is the lock again.
func (h ReleaseRequest) more() (key, what string) {
	switch {
	case h.Doubt:
		return tombstone(h.Key, h.Owner), "tombstone"
	case h.LastFence != 0:
		return counter(h.Key), decimal(h.LastFence)
	}
	return h.Key, ""
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one for each.
func (r *Redis) ReleaseEach(ctx context.Context, holds []ReleaseRequest, results []Result[ReleaseReply]) error {
	more := slices.ContainsFunc(holds, ReleaseRequest.leavesMore)
	return runEach(ctx, r, release, holds, func(in input, h ReleaseRequest) input { return releaseInput(in, h, more) }, results, parseReleased)
}

// leavesMore reports whether the release leaves a tombstone, or gives fence numbers back.
func (h ReleaseRequest) leavesMore() bool { return h.Doubt || h.LastFence != 0 }

// releaseInput adds what release is sent for a hold. Most releases leave nothing more; to say so costs the server a tenth
// of a release. All locks of a call say it, or none.
func releaseInput(in input, h ReleaseRequest, more bool) input {
	channel := ""
	if h.Notify {
		channel = scripts.Channel(h.Key)
	}
	in.keys, in.args = append(in.keys, h.Key), append(in.args, h.Owner, channel)
	if more {
		key, what := h.more()
		in.keys, in.args = append(in.keys, key), append(in.args, what)
	}
	return in
}

// ForceRelease frees key from all its holders, and announces that on its channel; existed reports
// whether it was held. A holder learns of it at its next renewal. What is not a lock stays
// unchanged and is an error. A repeat may end the hold of an owner that took the key in between.
func (o *onRedis) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	keys := o.keys(key)
	return parseBool(o.redis.invoke(ctx, o.forceRelease, len(keys), append(keys, o.channel(key))...))
}
