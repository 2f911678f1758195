package scripts

import "context"

var (
	release      = load("plain/release.lua")
	endEach      = load("plain/end_each.lua")
	forceRelease = load("plain/force_release.lua")
)

// Released is the answer to a release.
type Released struct {
	// Ours: the hold was the owner's and has ended.
	Ours bool
	// Listeners is how many subscribers were notified, on this node; -1 if Redis
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
	if err := checkLastFence(lastFence); err != nil {
		return Released{}, err
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
	results := make([]Result[Released], 1)
	err := n.EndEach(ctx, []Ending{{Key: key, Owner: owner, Notify: true, Doubt: true}}, results)
	if err == nil {
		err = results[0].Err
	}
	return results[0].Value, err
}

// Ending is a hold that is to end, by Release, CleanUp or a failed round of a quorum.
type Ending struct {
	Key, Owner string
	Notify     bool  // notify the key's channel
	Doubt      bool  // an acquire of the owner was not answered and may still arrive: leave a tombstone
	LastFence  int64 // if not 0, nor in doubt: the last fence number that was used; those reserved after it are given back
}

// EndEach ends each of holds by itself, whatever its count, and fills results, one for
// each. It works on a Redis that is out of memory and may be repeated; a repeat cannot
// tell its own success from a loss.
func (n *Node) EndEach(ctx context.Context, holds []Ending, results []Result[Released]) error {
	args := make([]string, 0, 5*len(holds))
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		if err := checkLastFence(h.LastFence); err != nil {
			return err
		}
		args = append(args, h.Key)
	}
	for _, h := range holds {
		if h.Doubt {
			args = append(args, tombstone(h.Key, h.Owner))
		} else if h.LastFence > 0 {
			args = append(args, counter(h.Key))
		}
	}
	keys := len(args)
	for _, h := range holds {
		channel, more := "", ""
		if h.Notify {
			channel = Channel(h.Key)
		}
		if h.Doubt {
			more = "tombstone"
		} else if h.LastFence > 0 {
			more = decimal(h.LastFence)
		}
		args = append(args, h.Owner, channel, more)
	}
	m, err := n.run(ctx, endEach, keys, args...)
	return parseResults(m, err, results, parseReleased)
}

// ForceRelease frees key from any holder, and announces that on its channel;
// existed tells whether it was held. The holder learns it at its next renewal.
// What is not a lock is left alone and is an error. A repeat may end the
// hold of an owner that took the key in between.
func (n *Node) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	return parseBool(n.run(ctx, forceRelease, 1, key, Channel(key)))
}
