package scripts

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
)

//go:embed plain/*.lua fair/*.lua semaphore/*.lua quorum/*.lua rwlock/*.lua parts/*.lua
var files embed.FS

// Scripts returns the text of each script, as Redis runs it, by its name: acquire is
// in plain/acquire.lua, fair_acquire in fair/acquire.lua. fair_acquire/sharded is the text
// for a Redis Cluster with shard channels, where it differs.
func Scripts() map[string]string { return maps.Clone(texts) }

// texts are those of Scripts; immutable.
var texts = func() map[string]string {
	all := map[string]string{}
	paths, _ := fs.Glob(files, "*/*.lua")
	for _, file := range paths {
		if path.Dir(file) != "parts" {
			add(all, nameOf(file), read(file))
		}
	}
	for _, file := range [...]string{
		"plain/acquire.lua", "plain/release.lua", "fair/acquire.lua", "fair/release.lua", "fair/leave.lua",
		"semaphore/acquire.lua", "semaphore/release.lua", "rwlock/acquire.lua", "rwlock/release.lua",
	} {
		add(all, nameOf(file)+"_each", fmt.Sprintf(eachText, nameOf(file), file))
	}
	return all
}()

// eachText is the text of a script that does with each of many locks what the script of a file does with one.
const eachText = `-- %[1]s_each: %[1]s for many locks, each by itself.
-- Repeat: safe, as %[1]s.
local function one(KEYS, ARGV)
  --@include %[2]s
end
--@include parts/each.lua
`

func nameOf(file string) string {
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(file, ".lua"), "plain/"), "/", "_")
}

var shardCommands = strings.NewReplacer("'PUBLISH'", "'SPUBLISH'", "'NUMSUB'", "'SHARDNUMSUB'")

// add adds the script with the text, and its variant for shard channels.
func add(all map[string]string, name, text string) {
	text = expand(text, "")
	all[name] = text
	if sharded := shardCommands.Replace(text); sharded != text {
		all[name+"/sharded"] = sharded
	}
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
