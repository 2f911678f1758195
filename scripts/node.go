package scripts

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// Node runs the scripts on one Redis. Its methods may be called concurrently;
// each is one round trip, and one more where Redis does not know the script
// yet. They send nothing twice by themselves otherwise, wait until the reply
// comes or ctx ends, and should be given a deadline. [OutcomeOf] says what an
// error means.
type Node struct {
	client rueidis.Client // immutable after NewNode
}

// NewNode returns a Node that works through client, which stays the caller's to
// close. It does no I/O.
func NewNode(client rueidis.Client) *Node { return &Node{client: client} }

// Server is the address of the Redis that the client works with at present.
func (n *Node) Server() string {
	for address := range n.client.Nodes() {
		return address
	}
	return "redis"
}

// run runs s with the first keys of args as KEYS and the others as ARGV.
//
// Commands are built without naming their keys to rueidis: it then sends all of
// a client's calls on one connection, in order, which is faster and keeps a
// release behind its acquire.
func (n *Node) run(ctx context.Context, s script, keys int, args ...string) (rueidis.RedisMessage, error) {
	if err := ctx.Err(); err != nil {
		return rueidis.RedisMessage{}, notSent{err}
	}
	cmd := n.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(keys)).Arg(args...).Build()
	reply, err := n.client.Do(ctx, cmd).ToMessage()
	if re, ok := err.(*rueidis.RedisError); ok && re.IsNoScript() {
		cmd = n.client.B().Eval().Script(s.text).Numkeys(int64(keys)).Arg(args...).Build()
		reply, err = n.client.Do(ctx, cmd).ToMessage()
	}
	return reply, explained(err)
}

// explained says more of the error of a call that Redis sends to another server, or
// whose key is no lock.
func explained(err error) error {
	if re, ok := err.(*rueidis.RedisError); ok {
		if isWrongType(re.Error()) {
			return wrongType{err}
		}
		_, moved := re.IsMoved()
		if _, ask := re.IsAsk(); moved || ask {
			return fmt.Errorf("node of a Redis Cluster, which is not supported yet: %w", err)
		}
	}
	return err
}
