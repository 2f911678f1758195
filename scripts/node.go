package scripts

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"

	"github.com/redis/rueidis"
)

// Node runs the scripts on one Redis. Its methods may be called concurrently;
// each is one round trip, and one more where Redis does not know the script
// yet. They send nothing twice by themselves otherwise, wait until the reply
// comes or ctx ends, and should be given a deadline. [OutcomeOf] tells what an
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

// script is the text of one Lua file and the SHA-1 by which Redis knows it.
type script struct{ text, sha string }

//go:embed *.lua
var files embed.FS

var (
	acquire       = load("acquire.lua")
	acquireFenced = load("acquire_fenced.lua")
	acquireAll    = load("acquire_all.lua")
	recount       = load("recount.lua")
	release       = load("release.lua")
	cleanUp       = load("clean_up.lua")
	renew         = load("renew.lua")
	forceRelease  = load("force_release.lua")
	inspect       = load("inspect.lua")

	fairAcquire = load("fair.lua", "fair_acquire.lua", "fair_settings.lua", "fair_hold.lua", "fair_holder.lua", "fair_acquire_else.lua",
		"fair_serve.lua", "fair_acquire_queued.lua")
	fairEnter = load("fair.lua", "fair_settings.lua", "fair_keep.lua", "fair_holder.lua", "fair_enter.lua", "fair_hold.lua",
		"fair_serve.lua", "fair_enter_free.lua")
	fairRelease = load("fair.lua", "fair_release.lua", "fair_settings.lua", "fair_hold.lua", "fair_serve.lua",
		"fair_pass.lua")
	fairLeave = load("fair.lua", "fair_settings.lua", "fair_leave.lua", "fair_hold.lua", "fair_serve.lua",
		"fair_pass.lua")
	fairConfirm   = load("fair.lua", "fair_settings.lua", "fair_hold.lua", "fair_confirm.lua")
	fairHeartbeat = load("fair.lua", "fair_settings.lua", "fair_keep.lua", "fair_hold.lua", "fair_holder.lua",
		"fair_serve.lua", "fair_heartbeat.lua")
	fairForceRelease = load("fair.lua", "fair_settings.lua", "fair_hold.lua", "fair_serve.lua",
		"fair_holder.lua", "fair_force_release.lua")
	fairInspect = load("fair_inspect.lua")
)

// load returns the script of one file, or of several put together.
func load(parts ...string) script {
	var text []byte
	for _, file := range parts {
		part, err := files.ReadFile(file)
		if err != nil {
			panic(err) // a file that go:embed did not find
		}
		text = append(text, part...)
	}
	return scriptOf(string(text))
}

func scriptOf(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// Commands returns the commands that a Redis user needs for the scripts, eval
// and evalsha included, in lower case.
func Commands() []string {
	return []string{
		"eval", "evalsha",
		"del", "exists", "get", "hdel", "hexists", "hget", "hrandfield", "hset",
		"pexpire", "pttl", "publish", "set", "time",
	}
}

// FairCommands returns the commands that a Redis user needs for the scripts of
// the fair queues, and for Renew and Recount, in lower case.
func FairCommands() []string {
	return []string{
		"eval", "evalsha",
		"del", "exists", "get", "hdel", "hexists", "hget", "hrandfield", "hset",
		"lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "pexpire", "pttl", "publish", "rpush",
		"set", "time", "zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore",
	}
}
