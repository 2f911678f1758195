package wire

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// HeartbeatRequest is what Heartbeat is asked for one key: to keep the client's places, to serve the
// next waiter of a free key, and to report which of some owners have lost their places.
type HeartbeatRequest struct {
	Key    string
	Owners []string
	Ahead  []time.Duration // as returned by Enter; 0: leave the score unchanged
	// Polls: the client does not hear its inbox. It still gets the lock when it is the next,
	// and finds out by its next heartbeat.
	Polls bool
	// Place: report the place of the first of Owners. The cost grows with the place.
	Place bool
}

// HeartbeatReply is what Heartbeat found out about one key.
type HeartbeatReply struct {
	// Err is how Redis refused this key; then nothing else is known.
	Err error
	// HeartbeatSoon: a Java waiter has the turn, the dead were too many for one call, or the
	// client polls and is the next.
	HeartbeatSoon bool
	// Grant names the waiter of this client to which this call gave the key. Without a
	// lease, that waiter holds the key since some earlier call.
	Grant Grant
	// Place is the place in the queue of the first owner, if the request asked for it: 1 is
	// the next. 0: it does not wait.
	Place int
	// Label is that of the holder; "" if there is none.
	Label string
	// Absent are the indexes of those owners of the request that neither wait nor
	// hold the key.
	Absent []int
}

// Heartbeat tells Redis that the client's waiters are alive, for up to some hundred keys in
// one call; a key that is free is given to its next waiter. Scores are kept
// Ahead of the server's clock, as far as the present length of the queue requires it. It
// may be repeated. replies has a slot for each of asked; a key that the user has no right
// to costs the others some round trips, as in [Redis.Renew]. The error of a key is in its reply.
// Heartbeat returns an error, too, if it is that of every key, but not where a script has keys of one
// slot only: one slot's error is not the others'.
func (f *Fair) Heartbeat(ctx context.Context, asked []HeartbeatRequest, replies []HeartbeatReply) error {
	err := f.redis.spread(len(asked), func(i int) string { return asked[i].Key }, forbidden, func(of []int) error {
		args := make([]string, 0, 8*len(of)+8)
		for _, i := range of {
			args = appendFairKeys(args, asked[i].Key)
		}
		args = append(args, f.labelled, f.lockerID)
		for _, i := range of {
			a := asked[i]
			args = append(args, strconv.Itoa(len(a.Owners)), digit[a.Polls]+digit[a.Place])
			for n, owner := range a.Owners {
				args = append(args, owner, millis(a.Ahead[n]))
			}
		}
		m, err := f.redis.invoke(ctx, fairHeartbeat, fairKeys*len(of), args...)
		values, err := arrayOf(m, err, len(of))
		for at, i := range of {
			if replies[i] = (HeartbeatReply{Err: err}); err == nil {
				replies[i] = parseHeartbeatReply(values[at], len(asked[i].Owners))
			}
		}
		return err
	})
	other := func(h HeartbeatReply) bool { return h.Err == nil || h.Err.Error() != err.Error() }
	if err == nil || f.redis.BySlot() || slices.ContainsFunc(replies, other) {
		return nil
	}
	return err
}

// digit is a bool as the script reads it. Immutable.
var digit = map[bool]string{false: "0", true: "1"}
