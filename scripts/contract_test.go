package scripts

import (
	"context"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// recorder is a client that notes which scripts ran, with how many keys and
// arguments, and which kinds of reply they gave.
type recorder struct {
	rueidis.Client
	keys, args map[string]map[string]bool // file -> the numbers seen
	replies    map[string]map[string]bool // file -> "7", "{0", "{}", "text", as classes returns them
}

func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	reply, err := result.ToMessage()
	if err != nil {
		return result
	}
	for file, s := range all() {
		if words[1] == s.sha || words[1] == s.text {
			keys, _ := strconv.Atoi(words[2])
			note(r.keys, file, words[2])
			note(r.args, file, strconv.Itoa(len(words)-3-keys))
			for _, class := range classes(file, reply) {
				note(r.replies, file, class)
			}
		}
	}
	return result
}

func note(seen map[string]map[string]bool, file, what string) {
	if seen[file] == nil {
		seen[file] = map[string]bool{}
	}
	seen[file][what] = true
}

// classes returns how the contracts write a reply. Of an array the first
// element tells, of renew's each.
func classes(file string, m rueidis.RedisMessage) []string {
	switch {
	case strings.HasPrefix(file, "fair_") && file != "fair_acquire.lua":
		return fairClasses(file, m)
	case m.IsInt64():
		v, _ := m.ToInt64()
		if v > 0 && file != "recount.lua" && file != "renew.lua" && file != "force_release.lua" {
			return []string{"> 0"}
		}
		return []string{strconv.FormatInt(v, 10)}
	case m.IsArray():
		values, _ := m.ToArray()
		switch {
		case file == "inspect.lua" && len(values) == 3:
			return []string{"{owner, entries, left}"}
		case file == "inspect.lua":
			return []string{"{}"}
		case file == "renew.lua":
			var each []string
			for _, v := range values {
				each = append(each, classes(file, v)...)
			}
			return each
		}
		return classes(file, values[0])
	}
	return []string{"text"}
}

func all() map[string]script {
	scripts := map[string]script{
		"acquire.lua": acquire, "acquire_fenced.lua": acquireFenced, "acquire_all.lua": acquireAll,
		"recount.lua": recount,
		"release.lua": release, "clean_up.lua": cleanUp, "renew.lua": renew,
		"force_release.lua": forceRelease, "inspect.lua": inspect,
	}
	maps.Copy(scripts, allFair())
	return scripts
}

var (
	headerName  = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^]]+\])  +(optional|with)?`)
	headerReply = regexp.MustCompile(`^-- (?:Reply| {5}) {4,6}(> 0|>= 0|-?\d+|\{\}|\{owner, entries, left\}|\{waiting[^}]*\}|\{[12], grant, place\.\.\.\}|text)(?:  *\S|$)`)
	bodyName    = regexp.MustCompile(`(?:KEYS|ARGV)\[[^]]+\]`)
	bodyCall    = regexp.MustCompile(`\b(?:p?call|try)\('([A-Z]+)'`)
)

// Header, body and Go wrapper of each script say the same.
func TestContracts(t *testing.T) {
	s, _ := start(t)
	r := &recorder{Client: s.Client(t), keys: map[string]map[string]bool{}, args: map[string]map[string]bool{}, replies: map[string]map[string]bool{}}
	everyReply(t, r, func(args ...string) { s.Do(t, args...) })
	everyFairReply(t, r, s)

	entries, err := files.ReadDir(".")
	require.NoError(t, err)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return ofSeveral(e.Name()) || e.Name() == "fair_each.lua" })
	for _, entry := range entries {
		require.True(t, isUsed(t, entry.Name()), entry.Name())
	}
	commands := map[string]bool{"eval": true, "evalsha": true}
	fairCommands := map[string]bool{"eval": true, "evalsha": true}
	for file, script := range all() {
		t.Run(file, func(t *testing.T) {
			fair := strings.HasPrefix(file, "fair_")
			head, shared, body := parts(t, file, script.text)
			require.Regexp(t, `^-- `+strings.TrimSuffix(file, ".lua")+`: `, head)
			require.Regexp(t, `(?m)^-- Repeat: (safe|unsafe)[. ]`, head)
			head = shared + head

			documented, optional, replies := map[string]bool{}, 0, map[string]bool{}
			for line := range strings.SplitSeq(head, "\n") {
				if m := headerName.FindStringSubmatch(line); m != nil {
					documented[m[1]] = true
					if m[2] != "" {
						optional++
					}
				}
				if m := headerReply.FindStringSubmatch(line); m != nil {
					replies[strings.Replace(m[1], ">= 0", "> 0", 1)] = true
					if m[1] == ">= 0" {
						replies["0"] = true
					}
				}
			}
			used := map[string]bool{}
			for _, name := range bodyName.FindAllString(body, -1) {
				used[strings.ReplaceAll(name, " ", "")] = true
			}
			if strings.Contains(body, "unpack(KEYS, i, ") {
				used["KEYS[i]"] = true
			}
			require.Equal(t, documented, used)
			require.Equal(t, replies, r.replies[file], "documented and produced replies")

			for kind, sent := range map[string]map[string]bool{"KEYS": r.keys[file], "ARGV": r.args[file]} {
				want := map[string]bool{}
				count, list := 0, false
				for name := range documented {
					switch {
					case !strings.HasPrefix(name, kind):
					case fair && !fixedName.MatchString(name):
						list = true
					default:
						count++
					}
				}
				if list {
					requireList(t, kind, count, sent)
					continue
				}
				if file == "renew.lua" { // KEYS[i] stands for the three keys of everyReply
					count += 2
				}
				want[strconv.Itoa(count)] = true
				if optional > 0 {
					want[strconv.Itoa(count-1)] = true
				}
				require.Equal(t, want, sent, kind)
			}
			for _, m := range bodyCall.FindAllStringSubmatch(body, -1) {
				if !fair {
					commands[strings.ToLower(m[1])] = true
				}
				if fair || file == "renew.lua" || file == "recount.lua" {
					fairCommands[strings.ToLower(m[1])] = true
				}
			}
		})
	}
	require.Equal(t, slices.Sorted(maps.Keys(commands)), slices.Sorted(slices.Values(Commands())))
	require.Equal(t, slices.Sorted(maps.Keys(fairCommands)), slices.Sorted(slices.Values(FairCommands())))
}

// everyReply brings about every reply of every script. do runs a command as
// administrator.
func everyReply(t *testing.T, client rueidis.Client, do func(args ...string)) {
	t.Helper()
	ctx, n := bounded(t), NewNode(client)
	call := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	listener, stop := client.Dedicate()
	defer stop()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})

	for _, f := range []Fencing{{}, {Reserve: 10, Expiry: time.Hour}} {
		get := func(owner string) (Acquired, error) {
			if f.Reserve > 0 {
				return n.AcquireFenced(ctx, "k", owner, lease, f)
			}
			return n.Acquire(ctx, "k", owner, lease)
		}
		do("FLUSHALL")
		call(get(ownA))
		call(get(ownB))
		do("PERSIST", "k")
		call(get(ownB))
		call(n.CleanUp(ctx, "k", ownA))
		call(get(ownA))
	}

	do("FLUSHALL")
	call(n.AcquireAll(ctx, []string{"k"}, []string{ownA}, lease))
	call(n.AcquireAll(ctx, []string{"k"}, []string{ownB}, lease))

	do("FLUSHALL")
	call(n.Inspect(ctx, "k"))
	call(n.Recount(ctx, "k", ownA, 2))
	call(n.Acquire(ctx, "k", ownA, lease))
	call(n.Recount(ctx, "k", ownA, 2))
	call(n.Inspect(ctx, "k"))

	do("SET", "string", "x")
	answers := make([]Answer, 3)
	call(nil, n.Renew(ctx, lease, []string{"k", "free", "string"}, []string{ownA, ownA, ownA}, answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs}, answers)

	call(n.ForceRelease(ctx, "k"))
	call(n.ForceRelease(ctx, "k"))

	ends := []func(owner string) (Released, error){
		func(owner string) (Released, error) { return n.Release(ctx, "k", owner, 0) },
		func(owner string) (Released, error) { return n.Release(ctx, "k", owner, 1) },
		func(owner string) (Released, error) { return n.CleanUp(ctx, "k", owner) },
	}
	hold := func(owner string) {
		do("DEL", tombstone("k", owner))
		call(n.Acquire(ctx, "k", owner, lease))
	}
	for _, end := range ends {
		hold(ownA)
		call(end(ownB))
		call(end(ownA))
	}
	require.NoError(t, listener.Do(ctx, listener.B().Subscribe().Channel(Channel("k")).Build()).Error())
	for _, end := range ends {
		hold(ownA)
		r, err := end(ownA)
		call(r, err)
		require.Equal(t, Released{Ours: true, Listeners: 1}, r)
	}
	do("ACL", "SETUSER", "default", "-publish")
	for _, end := range ends {
		hold(ownA)
		r, err := end(ownA)
		call(r, err)
		require.Equal(t, Released{Ours: true, Listeners: -1}, r)
	}
}

// split returns the leading comment of a script and the rest.
func split(text string) (head, body string) {
	lines := strings.SplitAfter(text, "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "--") })
	return strings.Join(lines[:i], ""), strings.Join(lines[i:], "")
}
