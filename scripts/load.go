package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"maps"
	"strings"
)

// script is the text that Redis runs, and the SHA-1 by which Redis knows it.
type script struct{ text, sha string }

//go:embed plain/*.lua fair/*.lua quorum/*.lua parts/*.lua
var files embed.FS

// loaded holds the text of each script by its name; immutable after init.
var loaded = map[string]string{}

// Scripts returns the text of each script, as Redis runs it, by its name: acquire is
// in plain/acquire.lua, fair_acquire in fair/acquire.lua.
func Scripts() map[string]string { return maps.Clone(loaded) }

// load returns the script of a file.
func load(file string) script {
	text := expand(file, "")
	name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(file, ".lua"), "plain/"), "/", "_")
	loaded[name] = text
	return scriptOf(text)
}

// expand returns the text of a file, in which a line "--@include file" stands for the
// text of that file. All lines are indented.
func expand(file, indent string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // a file that go:embed did not find
	}
	var whole strings.Builder
	for line := range strings.Lines(string(text)) {
		before, part, include := strings.Cut(line, "--@include ")
		switch {
		case include:
			whole.WriteString(expand(strings.TrimSpace(part), indent+before))
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
// the fair queues, and for Renew and Recount, in lower case.
func FairCommands() []string {
	return append(Commands(),
		"lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "rpush",
		"zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore")
}

// QuorumCommands returns the commands that a Redis user needs for the scripts of
// a quorum's nodes, and for what they share with one Redis, in lower case.
func QuorumCommands() []string { return append(Commands(), "info", "script|load") }
