package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// script is the text that Redis runs, and the SHA-1 by which Redis knows it.
type script struct {
	text, sha string
	sharded   *script // with the shard channels of a Redis Cluster; nil: it has no channels
	each      *script // does with each of many locks what this one does with one; nil: there is none
	renews    bool    // holds, of several keys perhaps; set by renewEach
	shows     bool    // labels, which stand in its reply; set by showing
}

// onShards is the script for shard channels.
func (s script) onShards() script {
	if s.sharded == nil {
		return s
	}
	return *s.sharded
}

var shardCommands = strings.NewReplacer("'PUBLISH'", "'SPUBLISH'", "'NUMSUB'", "'SHARDNUMSUB'")

//go:embed plain/*.lua fair/*.lua semaphore/*.lua quorum/*.lua rwlock/*.lua parts/*.lua
var files embed.FS

// loaded holds the text of each script by its name; immutable after init.
var loaded = map[string]string{}

// Scripts returns the text of each script, as Redis runs it, by its name: acquire is
// in plain/acquire.lua, fair_acquire in fair/acquire.lua. fair_acquire/sharded is the text
// for a Redis Cluster with shard channels, where it differs.
func Scripts() map[string]string { return maps.Clone(loaded) }

// load returns the script of a file.
func load(file string) script { return note(nameOf(file), read(file)) }

// showing returns the script of a file that shows labels.
func showing(file string) script {
	s := load(file)
	s.shows = true
	return s
}

// eachText is the text of a script that does with each of many locks what the script of a file does with one.
const eachText = `-- %[1]s_each: %[1]s for many locks, each by itself.
-- Repeat: safe, as %[1]s.
local function one(KEYS, ARGV)
  --@include %[2]s
end
--@include parts/each.lua
`

// loadEach returns the script of a file, which has that one as its each.
func loadEach(file string) script {
	s, each := load(file), note(nameOf(file)+"_each", fmt.Sprintf(eachText, nameOf(file), file))
	s.each = &each
	return s
}

func nameOf(file string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(file, ".lua"), "plain/"), "/", "_")
}

// note notes the script with the text, and its variant for shard channels.
func note(name, text string) script {
	text = expand(text, "")
	loaded[name] = text
	s := scriptOf(text)
	if other := shardCommands.Replace(text); other != text {
		other := scriptOf(other)
		s.sharded = &other
		loaded[name+"/sharded"] = other.text
	}
	return s
}

func read(file string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // a file that go:embed did not find
	}
	return string(text)
}

// expand returns a text with all lines indented. A line "--@include file" stands for the text of
// that file.
func expand(text, indent string) string {
	var whole strings.Builder
	for line := range strings.Lines(text) {
		before, part, include := strings.Cut(line, "--@include ")
		switch {
		case include:
			whole.WriteString(expand(read(strings.TrimSpace(part)), indent+before))
		case line == "\n":
			whole.WriteString(line)
		default:
			whole.WriteString(indent + line)
		}
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
// the fair queues, and for Renew and SetEntries, in lower case.
func FairCommands() []string {
	return append(Commands(),
		"lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "pubsub|numsub", "rpush",
		"zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore")
}

// SemaphoreCommands returns the commands that a Redis user needs for the scripts of permits, in lower
// case.
func SemaphoreCommands() []string {
	return []string{
		"eval", "evalsha",
		"del", "exists", "hdel", "hexists", "hget", "hmget", "hrandfield", "hset", "pexpire", "publish", "set", "time",
		"zadd", "zcount", "zrange", "zrangebyscore", "zrem", "zscore",
	}
}

// RWLockCommands returns the commands that a Redis user needs for the scripts of
// read/write locks, in lower case.
func RWLockCommands() []string {
	return append(slices.DeleteFunc(Commands(), func(c string) bool { return c == "hrandfield" }), "hgetall")
}

// ClusterCommands returns the commands that a Redis user of a Redis Cluster needs in addition
// to the lock kind's, in lower case: for the scripts, for the subscriptions, to learn where
// slots are, and to follow keys whose slot moves.
func ClusterCommands() []string {
	return []string{
		"asking", "cluster|shards", "cluster|slots",
		"pubsub|shardnumsub", "spublish", "ssubscribe", "sunsubscribe",
	}
}

// QuorumCommands returns the commands that a Redis user needs for the scripts of
// a quorum's nodes, and for what they share with one Redis, in lower case.
func QuorumCommands() []string { return append(Commands(), "info", "script|load") }
