package scripts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/redact"
)

// Node runs the scripts on one Redis, or on all of a Redis Cluster: on the node that has the key's
// slot. Its methods may be called concurrently. Each is one round trip if it says no other number. It
// takes one more where Redis does not know the script yet or names another node, and one call also asks
// whether Redis is too old. Else they send nothing twice by themselves. They wait until the reply comes
// or ctx ends, and should be given a deadline. [OutcomeOf] says what an error means.
type Node struct {
	NodeSettings // immutable after NewNode
	client       rueidis.Client
	one          string        // what the field of a hold with one entry holds; immutable
	known        atomic.Bool   // Cluster was refreshed once
	newer        atomic.Bool   // the server knows the newest command
	crossed      atomic.Bool   // see BySlot
	pools        sync.Map      // of connections by address of the node; "": of the one server
	sharing      chan struct{} // one slot: a renewal that shares its connection, see alone
	had          atomic.Uint32 // rights that the client has had, see allowed
}

// NodeSettings are what a Node needs to know of its Redis. The zero value is right for one
// server and for a Sentinel set.
type NodeSettings struct {
	Cluster *cluster.Map // nil unless the client is of a Redis Cluster
	Label   string       // of the owners, for people
	Shards  *bool        // whether locks use the shard channels of the Cluster; nil: where it has them

	// Replicas is how many replicas have to have a hold, an entry or a renewal before it
	// counts; 0: none. A call waits for them for ReplicaTimeout, in whole milliseconds,
	// and blocks for that time: it takes no notice of the end of ctx, but of its deadline.
	Replicas       int
	ReplicaTimeout time.Duration

	// Patience is how long a call waits for a dedicated connection of the client; 0: a second.
	Patience time.Duration
	Logger   *slog.Logger // told once when none comes; nil: not told
}

// NewNode returns a Node on one server or a Sentinel set. It works through client, which
// stays the caller's to close. It does no I/O.
func NewNode(client rueidis.Client) *Node { return NewNodeWith(client, NodeSettings{}) }

// NewNodeWith is NewNode with settings.
func NewNodeWith(client rueidis.Client, s NodeSettings) *Node {
	n := &Node{client: client, NodeSettings: s, sharing: make(chan struct{}, 1)}
	n.one = n.field(Entries{Count: 1})
	return n
}

// onNode is what Fair, Permits and ReadWrite have of their Node.
type onNode struct{ node *Node } // immutable

// EvictionPolicy is [Node.EvictionPolicy].
func (o onNode) EvictionPolicy(ctx context.Context) (string, error) {
	return o.node.EvictionPolicy(ctx)
}

// Scans is [Node.Scans].
func (o onNode) Scans(ctx context.Context, match string) ([]Scan, error) {
	return o.node.Scans(ctx, match)
}

// Entries are the entries of a hold.
type Entries struct {
	Count int
	Label *string // of their owner, for people; nil: that of the Node
}

// field is what the field of a hold holds: the number of its entries, and behind a space the
// label. Java never looks at the field of an owner that is not its own.
func (n *Node) field(e Entries) string {
	label := n.Label
	if e.Label != nil {
		label = *e.Label
	}
	if label == "" {
		return strconv.Itoa(e.Count)
	}
	return strconv.Itoa(e.Count) + " " + label
}

// Server is the address of the Redis that the client works with at present.
func (n *Node) Server() string {
	if n.Cluster != nil {
		return "Redis Cluster"
	}
	for address := range n.client.Nodes() {
		return address
	}
	return "redis"
}

// Sharded says whether the channels of locks are shard channels. The first call asks the
// cluster, also for its slots.
func (n *Node) Sharded(ctx context.Context) (bool, error) {
	if n.Cluster == nil {
		return false, nil
	}
	if !n.known.Load() {
		if err := n.Cluster.Refresh(ctx); err != nil {
			return false, unasked(err)
		}
		n.known.Store(true)
	}
	if n.Shards != nil && !*n.Shards {
		return false, nil
	}
	can, err := n.Cluster.Sharded(ctx)
	switch {
	case err != nil:
		return false, unasked(err)
	case !can && n.Shards != nil:
		return false, errNotSharded
	}
	return can, nil
}

var errNotSharded = notSent{errors.New("WithShardedPubSub: this Redis Cluster has no shard channels, which came with Redis 7.0")}

// invoke runs s with the first keys of args as KEYS and the others as ARGV. On a Redis Cluster
// they have to be of one slot.
func (n *Node) invoke(ctx context.Context, s script, keys int, args ...string) (rueidis.RedisMessage, error) {
	if err := ctx.Err(); err != nil {
		return rueidis.RedisMessage{}, notSent{err}
	}
	reply, err := n.invokeBy(ctx, n.client.Do, s, keys, args)
	if byReplica(reply, err) {
		n.leave(ctx)
	}
	return reply, err
}

// sender sends a command and returns its reply.
type sender func(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult

func (n *Node) invokeBy(ctx context.Context, do sender, s script, keys int, args []string) (rueidis.RedisMessage, error) {
	if n.Cluster != nil {
		return n.invokeInCluster(ctx, do, s, keys, args)
	}
	reply, needs, err := n.send(ctx, do, s, keys, args)
	if crossed(err) {
		err = n.cross(args[:keys], err)
	}
	return reply, n.allowed(needs, n.explained(ctx, err))
}

// send sends s by its hash, and to a server that does not know that by its text. needs are the
// rights that this takes.
func (n *Node) send(ctx context.Context, do sender, s script, keys int, args []string) (reply rueidis.RedisMessage, needs rights, err error) {
	reply, err = do(ctx, n.eval("EVALSHA", s.sha, keys, args)).ToMessage()
	needs = rightHash
	if noScript(err) {
		needs |= rightText
		if err = n.tooOld(ctx, args[0]); err == nil {
			reply, err = do(ctx, n.eval("EVAL", s.text, keys, args)).ToMessage()
		}
	}
	return reply, needs, err
}

// eval returns a command that runs a script. Only on a Redis Cluster it names the keys to
// rueidis, which else sends all of a client's calls on one connection, in order: that is faster,
// and keeps a release behind its acquire.
func (n *Node) eval(command, script string, keys int, args []string) rueidis.Completed {
	eval := n.client.B().Arbitrary(command, script, decimal(int64(keys)))
	if n.Cluster == nil {
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
func (n *Node) tooOld(ctx context.Context, key string) error {
	if n.newer.Load() {
		return nil
	}
	err := n.client.Do(ctx, n.eval("EVAL", newest, 1, []string{key})).Error()
	if errors.Is(explained(err), holdfast.ErrOldServer) {
		return err
	}
	n.newer.Store(err == nil || rueidis.IsRedisNil(err))
	return nil
}

// explained is explained for a call that may have lost its server to another one.
func (n *Node) explained(ctx context.Context, err error) error {
	if errors.Is(err, rueidis.ErrClosing) && n.client.Mode() != rueidis.ClientModeStandalone {
		ping := n.client.Do(ctx, n.client.B().Arbitrary("PING").Build()) // which rueidis does not repeat
		if !errors.Is(ping.Error(), rueidis.ErrClosing) {
			return errLeft
		}
	}
	return explained(err)
}

// errLeft is the error of a call whose connection the client has closed as it went over to another
// server. The client is not closed, although rueidis says so, and the call may have run.
var errLeft error = left{errors.New("the client has gone over to another server during the call")}

type left struct{ error }

func (left) Outcome() Outcome { return Unknown }

// explained says more of the error of a call that Redis sends to another server, and gives
// others the error of package holdfast. It takes away what Redis repeats of the call.
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
			return fmt.Errorf("the server is a node of a Redis Cluster, the client is not of one: %w", err)
		}
		return explain(re.Error(), err)
	}
	return err
}
