package wire

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/redact"
)

var errTag = refuse("key has a brace but no hash tag: on a Redis Cluster, names of Redisson for its parts would be in other slots")

// unasked returns the error of a question without whose answer no call is sent: Unavailable,
// unless Redis refused the question.
func unasked(err error) error {
	if err = redact.Error(err); OutcomeOf(err).Final() {
		return err
	}
	return Judge(err, Unavailable)
}

// invokeInCluster runs s on the node that has the slot of keys. rueidis follows MOVED and ASK.
// What a node refuses while the cluster changes is sent again, until changeTime has passed or
// ctx ends.
func (r *Redis) invokeInCluster(ctx context.Context, do sender, s script, keys int, args []string) (rueidis.RedisMessage, error) {
	if scattered(args[:keys]) {
		return rueidis.RedisMessage{}, errTag
	}
	shards, err := r.Sharded(ctx)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	if shards && s.sharded != nil {
		s = *s.sharded
	}
	began, pause := time.Now(), loop.Backoff{}
	for {
		reply, needs, err := r.send(ctx, do, s, keys, args)
		if !changing(err) {
			return reply, r.callError(ctx, needs, err)
		}
		over := time.Since(began) > changeTime || s.renews && divided(err) // Renew then divides its call
		if !loop.Sleep(pause.Below(50*time.Millisecond), ctx.Done()) || over {
			return reply, Judge(err, Unavailable)
		}
	}
}

// changeTime is for how long a call outlasts a change of the cluster: many times as long as
// a slot takes to move its last keys, and short compared with the time of a call, so that
// its caller learns that nothing was done. A failover takes seconds: the caller waits it
// out.
const changeTime = 200 * time.Millisecond

// changing reports whether a node refused a call because a slot moves or the cluster fails
// over.
func changing(err error) bool {
	re, ok := err.(*rueidis.RedisError)
	if !ok {
		return false
	}
	_, moved := re.IsMoved()
	_, ask := re.IsAsk()
	return moved || ask || re.IsTryAgain() || re.IsClusterDown()
}

// divided reports whether a node refused a call for several keys because a slot moves and
// some of them are on the other node.
func divided(err error) bool {
	re, replied := errors.AsType[*rueidis.RedisError](err)
	return replied && re.IsTryAgain()
}

// oneSlot reports whether all names of key are in the slot of key, see names.Of: either they
// have its hash tag, or key is theirs.
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
func oneSlot(key string) bool {
	_, tag, tagged := strings.Cut(key, "{")
	if !tagged {
		return !strings.Contains(key, "}")
	}
	return strings.IndexByte(tag, '}') > 0
}

// BySlot reports whether the keys of a call must be of one slot. They must on a Redis
// Cluster, and on a server that was found to require it. Such a server is one endpoint of a
// cluster, behind which a proxy or a single node has all slots.
func (r *Redis) BySlot() bool { return r.Cluster != nil || r.crossed.Load() }

// crossed reports whether one endpoint of a cluster refused a call for keys of several slots,
// before its script began.
func crossed(err error) bool {
	if err == nil { // the usual case
		return false
	}
	re, replied := errors.AsType[*rueidis.RedisError](err)
	return replied && (strings.HasPrefix(re.Error(), "CROSSSLOT ") || strings.Contains(re.Error(), sameSlot))
}

// sameSlot is how Alibaba's proxies say CROSSSLOT.
const sameSlot = " command keys must in same slot"

// scattered reports whether a key has names in several slots by itself.
func scattered(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return !oneSlot(key) })
}
