package scripts

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	nameLine  = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^]]+\]) +(optional|with)?`)
	replyLine = regexp.MustCompile(`^-- (?:Reply)? +(\{[^}]*\}|text|-?\d+|> 0|>= 0)(?: |$)`)
	bodyName  = regexp.MustCompile(`(?:KEYS|ARGV)\[[^]]+\]`)
	bodyCall  = regexp.MustCompile(`\b(?:p?call|try)\('([A-Z]+)'(?:, '(NUMSUB)')?`)
	fixedName = regexp.MustCompile(`^[A-Z]+\[\d+\]$`) // what a call has once, and not a list of
)

// contract is what the comments of a script say.
type contract struct {
	names, replies map[string]bool
	optional       map[string]int // of the names, by KEYS or ARGV
	body           string
}

// contractOf reads the text of a script. What several files of it document counts once.
func contractOf(text string) contract {
	c := contract{names: map[string]bool{}, replies: map[string]bool{}, optional: map[string]int{}}
	inReply := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "--") {
			c.body += line + "\n"
			continue
		}
		if m := nameLine.FindStringSubmatch(line); m != nil {
			if !c.names[m[1]] && m[2] != "" {
				c.optional[m[1][:4]]++
			}
			c.names[m[1]] = true
		}
		inReply = (inReply || strings.HasPrefix(line, "-- Reply")) && !strings.HasPrefix(line, "-- Repeat")
		if m := replyLine.FindStringSubmatch(line); inReply && m != nil {
			c.replies[strings.Replace(m[1], ">=", ">", 1)] = true
			if m[1] == ">= 0" {
				c.replies["0"] = true
			}
		}
	}
	return c
}

// count is how many of the names a call has once, and whether it has lists, too.
func (c contract) count(kind string) (fixed int, list bool) {
	for name := range c.names {
		switch {
		case !strings.HasPrefix(name, kind), name == "KEYS[n]":
		case fixedName.MatchString(name):
			fixed++
		default:
			list = true
		}
	}
	return fixed, list
}

// Header, body and Go wrapper of each script say the same.
func TestContracts(t *testing.T) {
	r := record(t)
	ofNode, ofFair, ofQuorum := map[string]bool{}, map[string]bool{}, map[string]bool{"script|load": true}
	for name, text := range Scripts() {
		if strings.Contains(name, "/") { // for other deployments
			continue
		}
		t.Run(name, func(t *testing.T) {
			require.True(t, strings.HasPrefix(text, "-- "+name+": "))
			require.Regexp(t, `(?m)^-- Repeat: (safe|unsafe)[. ,]`, text)
			c := contractOf(text)
			used := map[string]bool{}
			for _, found := range bodyName.FindAllString(c.body, -1) {
				used[strings.ReplaceAll(strings.ReplaceAll(found, " ", ""), "#KEYS", "n")] = true
			}
			if strings.Contains(c.body, "unpack(KEYS, i, ") {
				used["KEYS[i]"] = true
			}
			require.Equal(t, c.names, used)
			if name == "quorum_acquire" { // in the place of acquire's
				delete(c.replies, "> 0")
				delete(c.replies, "-1")
				delete(c.replies, "text")
				delete(c.replies, "{0, first, last}")
			}
			require.Equal(t, c.replies, r.replies[name], "documented and produced replies")
			requireCounts(t, name, text, "KEYS", r.keys[name])
			requireCounts(t, name, text, "ARGV", r.args[name])

			for _, m := range bodyCall.FindAllStringSubmatch(c.body, -1) {
				command := strings.ToLower(strings.TrimSuffix(m[1]+"|"+m[2], "|"))
				fair, quorum := strings.HasPrefix(name, "fair_"), strings.HasPrefix(name, "quorum_")
				if !fair && !quorum {
					ofNode[command] = true
				}
				if fair || name == "renew" || name == "recount" {
					ofFair[command] = true
				}
				if quorum || slices.Contains([]string{"release_each", "recount", "force_release", "inspect"}, name) {
					ofQuorum[command] = true
				}
			}
		})
	}
	for _, c := range []struct {
		used   map[string]bool
		listed []string
	}{{ofNode, Commands()}, {ofFair, FairCommands()}, {ofQuorum, QuorumCommands()}} {
		c.used["eval"], c.used["evalsha"] = true, true
		require.Equal(t, slices.Sorted(maps.Keys(c.used)), slices.Sorted(slices.Values(c.listed)))
	}
}

// requireCounts requires that a script was called with as many keys or arguments as its
// contract names.
func requireCounts(t *testing.T, name, text, kind string, sent map[string]bool) {
	t.Helper()
	c := contractOf(text)
	switch {
	case name == "quorum_acquire" && kind == "ARGV":
		c = contractOf(acquire.text)
	case isEach(name):
		c = contractOf(Scripts()[strings.TrimSuffix(name, "_each")])
	}
	count, list := c.count(kind)
	if list {
		for text := range sent {
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, count, kind)
		}
		return
	}
	for text := range sent {
		require.Contains(t, []string{strconv.Itoa(count), strconv.Itoa(count - c.optional[kind])}, text, kind)
	}
	require.Contains(t, sent, strconv.Itoa(count-c.optional[kind]), kind)
}

// Each file is a script, or a part of some.
func TestFilesAreUsed(t *testing.T) {
	all := Scripts()
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimSuffix(path.Base(file), ".lua")
		if folder := path.Dir(file); folder != "plain" {
			name = folder + "_" + name
		}
		content := must(files.ReadFile(file))(t)
		first, _, _ := strings.Cut(string(content), "\n")
		require.True(t, all[name] != "" || slices.ContainsFunc(slices.Collect(maps.Values(all)), func(text string) bool {
			return path.Dir(file) == "parts" && strings.Contains(text, first+"\n")
		}), file)
		return nil
	})
	require.NoError(t, err)
	for name, text := range all {
		require.NotContains(t, text, "--@", name)
	}
}
