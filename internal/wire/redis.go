package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/redact"
	"github.com/holdfast-go/holdfast/scripts"
)

// Redis runs the scripts on one Redis: a server, a Sentinel set, or a Redis Cluster, there on the node that has the key's
// slot. Its methods may be called concurrently. Each is one round trip unless it says otherwise. It takes one more where
// Redis does not know the script yet or names another node, and one call also asks whether Redis is too old. They
// repeat by themselves only what has not run. They wait until the reply comes or ctx ends, and should be given a deadline.
// [OutcomeOf] says what an error means.
type Redis struct {
	onRedis       // with the scripts of a plain lock
	RedisSettings // immutable after NewRedis
	client        rueidis.Client
	oneEntry      string        // the value of a new hold's field, without a label of its own; immutable
	slotsAsked    atomic.Bool   // Cluster was refreshed once
	knowsNewest   atomic.Bool   // the server knows the newest command
	crossed       atomic.Bool   // see BySlot
	pools         sync.Map      // of connections by address of the node; "": of the one server
	renewSlot     chan struct{} // one slot: a renewal that shares its connection, see sendAndWait
	hadRights     atomic.Uint32 // rights that the client has had, see allowed
}

// RedisSettings are what a [Redis] needs to know about its server. The zero value is right for one
// server and for a Sentinel set.
type RedisSettings struct {
	Cluster *cluster.Map // nil unless the client is of a Redis Cluster
	Label   string       // of the owners, for people
	Shards  *bool        // whether locks use the shard channels of the Cluster; nil: where it has them

	// Replicas is how many replicas must have a hold, an entry or a renewal before it
	// counts; 0: none. A call waits for them for ReplicaTimeout, in whole milliseconds,
	// and blocks for that time: it ignores the end of ctx, but not its deadline.
	Replicas       int
	ReplicaTimeout time.Duration

	// Patience is how long a call waits for a dedicated connection of the client; 0: a second. It is a
	// part of the call's time, so that the call can still tell its caller that nothing was done.
	Patience time.Duration
	Logger   *slog.Logger // told once when none comes; nil: not told
}

// NewRedis returns a Redis that works through client, which stays the caller's to close. It does no I/O.
func NewRedis(client rueidis.Client, s RedisSettings) *Redis {
	s.Patience = cmp.Or(s.Patience, time.Second)
	r := &Redis{client: client, RedisSettings: s, renewSlot: make(chan struct{}, 1)}
	r.oneEntry = r.field(Entries{Count: 1})
	r.onRedis = onRedis{
		redis: r, keyType: "hash", keys: func(key string) []string { return []string{key} }, parse: parseStatus, channel: scripts.Channel,
		inspect: inspect, renew: renewScript{script: renew}, setEntries: setEntries, forceRelease: forceRelease,
	}
	return r
}

// onRedis is what Redis, Fair, Semaphore and RWLock have in common: calls by the scripts of their kind. Immutable.
type onRedis struct {
	redis        *Redis
	keyType      string // of SCAN
	inspect      script
	keys         func(key string) []string // that inspect and forceRelease are given
	parse        parser[holdfast.Status]   // of the reply of inspect
	renew        renewScript
	setEntries   script
	forceRelease script                  // Fair has a call of its own
	channel      func(key string) string // that forceRelease is given
}

// Server is the address of the Redis that the client works with at present; of a Redis Cluster, only that it is one.
func (r *Redis) Server() string {
	if r.Cluster != nil {
		return "Redis Cluster"
	}
	for address := range r.client.Nodes() {
		return address
	}
	return "redis"
}

// Sharded reports whether the channels of locks are shard channels. The first call asks the
// cluster, also for its slots.
func (r *Redis) Sharded(ctx context.Context) (bool, error) {
	if r.Cluster == nil {
		return false, nil
	}
	if !r.slotsAsked.Load() {
		if err := r.Cluster.Refresh(ctx); err != nil {
			return false, unasked(err)
		}
		r.slotsAsked.Store(true)
	}
	if r.Shards != nil && !*r.Shards {
		return false, nil
	}
	can, err := r.Cluster.Sharded(ctx)
	switch {
	case err != nil:
		return false, unasked(err)
	case !can && r.Shards != nil:
		return false, errNotSharded
	}
	return can, nil
}

var errNotSharded = notSent{errors.New("WithShardedPubSub: this Redis Cluster has no shard channels, which came with Redis 7.0")}

// invoke runs s with the first keys of args as KEYS and the others as ARGV. On a Redis Cluster
// they must be of one slot.
func (r *Redis) invoke(ctx context.Context, s script, keys int, args ...string) (rueidis.RedisMessage, error) {
	if err := ctx.Err(); err != nil {
		return rueidis.RedisMessage{}, notSent{err}
	}
	reply, err := r.invokeBy(ctx, r.client.Do, s, keys, args)
	if (err != nil || !s.shows) && byReplica(reply, err) {
		r.redial(ctx)
	}
	return reply, err
}

// write is invoke for a change that counts only once Replicas replicas have it. shortfall is why it does
// not count; nil: it does.
func (r *Redis) write(ctx context.Context, s script, keys int, args ...string) (reply rueidis.RedisMessage, shortfall, err error) {
	if r.Replicas > 0 {
		return r.onReplicas(ctx, s, keys, args)
	}
	reply, err = r.invoke(ctx, s, keys, args...)
	return reply, nil, err
}

// sender sends a command and returns its reply.
type sender func(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult

// invokeBy is invoke by another sender, also on a Redis Cluster. It explains the error, and notes
// the client's rights.
func (r *Redis) invokeBy(ctx context.Context, do sender, s script, keys int, args []string) (rueidis.RedisMessage, error) {
	if r.Cluster != nil {
		return r.invokeInCluster(ctx, do, s, keys, args)
	}
	reply, needs, err := r.send(ctx, do, s, keys, args)
	if crossed(err) {
		if r.crossed.Store(true); scattered(args[:keys]) {
			err = errTag
		}
	}
	return reply, r.callError(ctx, needs, err)
}

// send sends s by its hash, and to a server that does not know that by its text, unless s is bound. needs are
// the rights that this takes.
func (r *Redis) send(ctx context.Context, do sender, s script, keys int, args []string) (reply rueidis.RedisMessage, needs rights, err error) {
	reply, err = do(ctx, r.eval("EVALSHA", s.sha, keys, args)).ToMessage()
	needs = rightHash
	if noScript(err) && !s.bound {
		needs |= rightText
		if err = r.tooOld(ctx, args[0]); err == nil {
			reply, err = do(ctx, r.eval("EVAL", s.text, keys, args)).ToMessage()
		}
	}
	return reply, needs, err
}

// eval returns a command that runs a script. Only on a Redis Cluster does it name the keys to
// rueidis. Without them, rueidis sends all of a client's calls on one connection, in order: that
// is faster, and keeps a release behind its acquire.
func (r *Redis) eval(command, script string, keys int, args []string) rueidis.Completed {
	eval := r.client.B().Arbitrary(command, script, decimal(int64(keys)))
	if r.Cluster == nil {
		return eval.Args(args...).Build()
	}
	return eval.Keys(args[:keys]...).Args(args[keys:]...).Build()
}

func noScript(err error) bool {
	re, ok := err.(*rueidis.RedisError)
	return ok && re.IsNoScript()
}

// newest calls the newest command that the scripts need, which came with Redis 6.2.
const newest = "return redis.call('HRANDFIELD', KEYS[1])"

// tooOld returns the error of a server that does not know the newest command. One that does
// not know a script is asked, once, so that an old one refuses the first call, and not the
// first call that finds a key held. Nothing is written, so no replica is waited for.
func (r *Redis) tooOld(ctx context.Context, key string) error {
	if r.knowsNewest.Load() {
		return nil
	}
	err := r.client.Do(ctx, r.eval("EVAL", newest, 1, []string{key})).Error()
	if errors.Is(explained(err), holdfast.ErrOldServer) {
		return err
	}
	r.knowsNewest.Store(err == nil || rueidis.IsRedisNil(err))
	return nil
}

// callError takes in how a call that needs some rights has ended, and returns its error, explained: as
// errSwitched if the call may have lost its server to another one, as lapsed if the client had the rights.
func (r *Redis) callError(ctx context.Context, needs rights, err error) error {
	if errors.Is(err, rueidis.ErrClosing) && r.client.Mode() != rueidis.ClientModeStandalone {
		ping := r.client.Do(ctx, r.client.B().Arbitrary("PING").Build()) // which rueidis does not repeat
		if !errors.Is(ping.Error(), rueidis.ErrClosing) {
			return errSwitched
		}
	}
	return r.allowed(needs, explained(err))
}

// errSwitched is the error of a call whose connection the client closed when it switched to another
// server. The client is not closed, although rueidis says so, and the call may have run.
var errSwitched = errors.New("the client switched to another server during the call")

// explained says what is wrong with the client if Redis sends its call to another server (MOVED,
// ASK), and gives other errors that of package holdfast. It removes what Redis repeats of the call.
func explained(err error) error {
	if err == nil { // the usual case allocates nothing
		return nil
	}
	if text, repeats := redact.Reply(err); repeats {
		return refusedAs(text)
	}
	if re, ok := err.(*rueidis.RedisError); ok {
		_, moved := re.IsMoved()
		if _, ask := re.IsAsk(); moved || ask {
			return fmt.Errorf("the server is a Redis Cluster node, but the client is not a cluster client: %w", err)
		}
		return explain(re.Error(), err)
	}
	return err
}
