package scripts

import "context"

var (
	release      = load("plain/release.lua")
	releaseEach  = load("plain/release_each.lua")
	cleanUp      = load("plain/clean_up.lua")
	cleanUpEach  = load("plain/clean_up_each.lua")
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
	if err := CheckKey(key); err != nil {
		return Released{}, err
	}
	return parseReleased(n.run(ctx, cleanUp, 2, key, tombstone(key, owner), owner, Channel(key)))
}

// Hold is a lock and its holder.
type Hold struct{ Key, Owner string }

// ReleaseEach does as [Node.Release] for each of holds, by itself and without fence
// numbers to give back, and fills results, one for each.
func (n *Node) ReleaseEach(ctx context.Context, holds []Hold, results []Result[Released]) error {
	if len(holds) == 1 { // by the script that Redis knows already
		r, err := n.Release(ctx, holds[0].Key, holds[0].Owner, 0)
		results[0] = Result[Released]{r, err}
		return err
	}
	return n.endEach(ctx, releaseEach, holds, false, results)
}

// CleanUpEach does as [Node.CleanUp] for each of holds, by itself, and fills results,
// one for each.
func (n *Node) CleanUpEach(ctx context.Context, holds []Hold, results []Result[Released]) error {
	return n.endEach(ctx, cleanUpEach, holds, true, results)
}

func (n *Node) endEach(ctx context.Context, s script, holds []Hold, tombstones bool, results []Result[Released]) error {
	keys, args := make([]string, 0, 2*len(holds)), make([]string, 0, 2*len(holds))
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		keys, args = append(keys, h.Key), append(args, h.Owner, Channel(h.Key))
		if tombstones {
			keys = append(keys, tombstone(h.Key, h.Owner))
		}
	}
	return runEach(ctx, n, s, len(holds), keys, args, results, parseReleased)
}

// ForceRelease frees key, whoever holds it, and announces that on its channel;
// existed tells whether it was held. The holder learns it at its next renewal.
// What is not a lock is left alone and is an error. A repeat may end the
// hold of an owner that took the key in between.
func (n *Node) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	return parseBool(n.run(ctx, forceRelease, 1, key, Channel(key)))
}
