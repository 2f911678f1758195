package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"maps"
	"strings"
)

// script is the text that Redis runs, and the SHA-1 by which Redis knows it.
type script struct {
	text, sha string
	others    [dialects - 1]*script // in the dialects after the first, where they differ from it
}

// dialect is how scripts speak to subscribers.
type dialect int

const (
	// single is for a server whose PUBLISH counts all subscribers that get a message.
	single dialect = iota
	// failover is for servers that take over from one another, as in a Sentinel set or a
	// Redis Cluster: a message also reaches subscribers at a replica or at another node,
	// which PUBLISH does not count.
	failover
	// sharded is failover with the shard channels of a Redis Cluster.
	sharded
	dialects
)

func (s script) in(d dialect) script {
	if d == single || s.others[d-1] == nil {
		return s
	}
	return *s.others[d-1]
}

// dialectNames end the names of scripts.
var dialectNames = [dialects]string{failover: "/failover", sharded: "/sharded"}

var shardCommands = strings.NewReplacer("'PUBLISH'", "'SPUBLISH'", "'NUMSUB'", "'SHARDNUMSUB'")

//go:embed plain/*.lua fair/*.lua quorum/*.lua parts/*.lua
var files embed.FS

// loaded holds the text of each script by its name; immutable after init.
var loaded = map[string]string{}

// Scripts returns the text of each script, as Redis runs it, by its name: acquire is
// in plain/acquire.lua, fair_acquire in fair/acquire.lua. Where the text differs for clients
// of a Sentinel set or a Redis Cluster, fair_acquire/failover is that for them, and
// fair_acquire/sharded that for a cluster with shard channels.
func Scripts() map[string]string { return maps.Clone(loaded) }

func load(file string) script {
	text := expand(file, "", single)
	name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(file, ".lua"), "plain/"), "/", "_")
	loaded[name] = text
	s := scriptOf(text)
	for d := failover; d < dialects; d++ {
		if other := expand(file, "", d); other != text {
			other := scriptOf(other)
			s.others[d-1] = &other
			loaded[name+dialectNames[d]] = other.text
		}
	}
	return s
}

// expand returns the text of a file in a dialect. A line "--@include file" stands for the
// text of that file, and "--@failover file" for a text that the dialect single lacks. All
// lines are indented.
func expand(file, indent string, d dialect) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // a file that go:embed did not find
	}
	var whole strings.Builder
	for line := range strings.Lines(string(text)) {
		before, part, include := strings.Cut(line, "--@include ")
		if !include {
			before, part, include = strings.Cut(line, "--@failover ")
			if include && d == single {
				continue
			}
		}
		switch {
		case include:
			whole.WriteString(expand(strings.TrimSpace(part), indent+before, d))
		case line == "\n":
			whole.WriteString(line)
		default:
			whole.WriteString(indent + line)
		}
	}
	if d == sharded {
		return shardCommands.Replace(whole.String())
	}
	return whole.String()
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
	return append(Commands(),
		"lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "rpush",
		"zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore")
}

// ClusterCommands returns the commands that a Redis user of a Redis Cluster needs besides
// the lock kind's, in lower case: for the scripts, for the subscriptions, to learn where slots
// are, and to follow keys whose slot moves.
func ClusterCommands() []string {
	return []string{
		"asking", "cluster|shards", "cluster|slots",
		"pubsub|numsub", "pubsub|shardnumsub", "spublish", "ssubscribe", "sunsubscribe",
	}
}

// QuorumCommands returns the commands that a Redis user needs for the scripts of
// a quorum's nodes, and for what they share with one Redis, in lower case.
func QuorumCommands() []string { return append(Commands(), "info", "script|load") }
