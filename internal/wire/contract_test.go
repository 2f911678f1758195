package wire

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

// recorder is a client that notes with what each script was called, and its replies.
type recorder struct {
	rueidis.Client
	vote  *Vote
	calls map[string][]recorded // by the name of the script
}

type recorded struct {
	keys, args []string
	reply      rueidis.RedisMessage
}

func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	for name, text := range scripts.Scripts() {
		known := []string{text, scriptOf(text).sha}
		if name == "quorum_acquire" {
			known = append(known, r.vote.acquire.sha)
		}
		if reply, err := result.ToMessage(); err == nil && slices.Contains(known, words[1]) {
			keys, _ := strconv.Atoi(words[2])
			r.calls[name] = append(r.calls[name], recorded{words[3 : 3+keys], words[3+keys:], reply})
		}
	}
	return result
}

// more are situations that bring about the other replies.
var more = map[string]func(r *harness){
	"endless":          func(r *harness) { r.acquire(ofB(1)); r.s.Do(r.t, "PERSIST", "k") },
	"labelled":         func(r *harness) { r.s.Do(r.t, "HSET", "k", ofB(1), "1 a b"); r.s.Do(r.t, "PEXPIRE", "k", "60000") },
	"labelled endless": func(r *harness) { r.s.Do(r.t, "HSET", "k", ofB(1), "1 a b") },
	"held by us":       func(r *harness) { r.acquire(ofA(1)) },
	"another waits":    func(r *harness) { r.follow(ofA(1), ofA(3)) },
	"Java's turn":      func(r *harness) { r.s.Do(r.t, "RPUSH", queue("k"), ofJ(1)) },
	"given up": func(r *harness) {
		r.s.Do(r.t, "SET", tombstone("k", ofA(1)), "1")
		r.s.Do(r.t, "SET", tombstone("k", writer(ofA(1))), "1")
	},
	"permits elsewhere": func(r *harness) { r.permits(3, ofB(1)) },
	"no label": func(r *harness) {
		p := NewSemaphore(r.redis, 2)
		must(p.Acquire(bounded(r.t), asking("k", ofB(1))))(r.t)
		must(p.Acquire(bounded(r.t), asking("k", ofB(2))))(r.t)
	},
	"permit listener":    func(r *harness) { r.permits(2, ofA(1)); r.subscribe(scripts.SemaphoreChannel("k")) },
	"permit, no message": func(r *harness) { r.permits(2, ofA(1)); r.s.Do(r.t, "ACL", "SETUSER", "default", "-publish") },
	"other set":          func(r *harness) { r.s.Do(r.t, "ZADD", "k", "1", "x") },
	"string":             func(r *harness) { r.s.Do(r.t, "SET", "k", "x") },
	"another marker":     func(r *harness) { r.s.Do(r.t, "SET", marker, "x") },
	"listener":           func(r *harness) { r.acquire(ofA(1)); r.subscribe(scripts.Channel("k")) },
	"no messages":        func(r *harness) { r.acquire(ofA(1)); r.s.Do(r.t, "ACL", "SETUSER", "default", "-publish") },
	"endless writer": func(r *harness) {
		r.shares(writer(ofB(1)))
		r.s.Do(r.t, "PERSIST", "k")
		r.s.Do(r.t, "PERSIST", timeout("k", writer(ofB(1))))
	},
	"labelled writer": func(r *harness) {
		r.shares(writer(ofB(1)))
		r.s.Do(r.t, "SET", timeout("k", writer(ofB(1))), "1 a b", "KEEPTTL")
	},
	"listening writer": func(r *harness) { r.shares(writer(ofA(1))); r.subscribe(scripts.RWLockChannel("k")) },
	"silent writer":    func(r *harness) { r.shares(writer(ofA(1))); r.s.Do(r.t, "ACL", "SETUSER", "default", "-publish") },
}

// record makes every call in every situation.
func record(t *testing.T) map[string][]recorded {
	t.Helper()
	h := ofQuorum.harness(t)
	r := &recorder{h.s.Client(t), h.vote, map[string][]recorded{}}
	c := clientOn(NewRedis(r, RedisSettings{}), h.vote)
	for _, all := range []map[string]func(*harness){situations, more} {
		for _, bring := range all {
			for _, f := range families {
				for _, call := range f.calls {
					h.clear()
					bring(h)
					_ = call(c.wants(t, "k", ofA(1)))
					h.s.Do(t, "ACL", "SETUSER", "default", "+publish")
					h.unsubscribe(scripts.Channel("k"), scripts.SemaphoreChannel("k"), scripts.RWLockChannel("k"))
				}
			}
		}
	}
	return r.calls
}

// requireNames requires that whatever else than locks a script is given is among the names that are refused.
func requireNames(t *testing.T, all map[string][]recorded) {
	t.Helper()
	refused := map[string]bool{}
	for _, calls := range all {
		for _, call := range calls {
			for _, name := range call.keys {
				require.Equal(t, name == "k", check.Key(name) == nil, name)
				prefix, _, _ := strings.Cut(name, ":")
				refused[prefix] = true
			}
		}
	}
	for _, prefix := range names.Helpers {
		require.Equal(t, prefix != names.LatchPrefix, refused[prefix], prefix)
	}
}

var (
	nameLine    = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^]]+\]) +(optional|with)?`)
	replyLine   = regexp.MustCompile(`^-- (?:Reply)? +(\{[^}]*\}|text|-?\d+|> 0|>= 0)(?: |$)`)
	bodyName    = regexp.MustCompile(`(?:KEYS|ARGV)\[[^]]+\]`)
	bodyCall    = regexp.MustCompile(`\b(?:p?call|try)\('([A-Z]+)'(?:, '(NUMSUB)')?`)
	fixedName   = regexp.MustCompile(`^[A-Z]+\[\d+\]$`)      // what a call has once, and not a list of
	answers     = regexp.MustCompile(`(answer|state)\.\.\.`) // a reply that ends with replies
	anything    = regexp.MustCompile(``)
	literalText = regexp.MustCompile(`^[-\d{}]+$`) // a reply without a name
)

// contract is what the comments of a script say.
type contract struct {
	names, replies map[string]bool
	optional       map[string]int // of the names, by KEYS or ARGV
	fenced         bool           // fence numbers may follow a reply that is a number
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
		c.fenced = c.fenced || strings.Contains(line, "a number; with fencing")
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

// find returns the documented reply that m is: one without names before any other, and a list of
// answers before the rest. An answer is no list of answers.
func (c contract) find(m rueidis.RedisMessage, isAnswer bool) string {
	for _, first := range []*regexp.Regexp{literalText, answers, anything} {
		for reply := range c.replies {
			if first.MatchString(reply) && fits(reply, m) && !(isAnswer && answers.MatchString(reply)) {
				return reply
			}
		}
	}
	return ""
}

// note notes which documented reply m is, and of a list of answers, which each of them is.
func (c contract) note(m rueidis.RedisMessage, isAnswer bool, seen map[string]bool) {
	if values, _ := m.ToArray(); c.fenced && len(values) == 3 {
		m = values[0]
	}
	reply := c.find(m, isAnswer)
	isList := answers.MatchString(reply)
	if reply != "" || isAnswer || !m.IsArray() {
		seen[reply] = true
	} else {
		isList = true // what the contract says in words
	}
	if values, _ := m.ToArray(); isList {
		for _, value := range values[strings.Count(reply, ", "):] {
			c.note(value, true, seen)
		}
	}
}

// fits reports whether m is a documented reply, in which a number stands for itself, a name for
// anything, and a name... for any number of values.
func fits(reply string, m rueidis.RedisMessage) bool {
	if !strings.HasPrefix(reply, "{") {
		number, err := m.ToInt64()
		return err != nil && !m.IsArray() && reply == "text" || err == nil && (reply == decimal(number) || reply == "> 0" && number > 0)
	}
	values, err := m.ToArray()
	names := strings.Split(strings.Trim(reply, "{}"), ", ")
	if err != nil || reply == "{}" {
		return err == nil && len(values) == 0
	}
	for i, name := range names {
		_, bad := strconv.Atoi(name)
		if i < len(values) && (bad == nil || name == "text") && !fits(name, values[i]) {
			return false
		}
	}
	return len(values) == len(names) || strings.HasSuffix(reply, "...}") && (len(values) >= len(names)-1 || len(values) == 0)
}

// Header, body and Go wrapper of each script say the same.
func TestContracts(t *testing.T) {
	calls := record(t)
	requireNames(t, calls)
	commands := map[string]map[string]bool{"plain": {}, "fair": {}, "semaphore": {}, "quorum": {"script|load": true}, "rwlock": {}}
	shared := map[string][]string{ // what other kinds of lock use of plain
		"renew": {"fair"}, "set_entries": {"fair", "quorum"}, "release_each": {"quorum"}, "force_release": {"quorum"}, "inspect": {"fair", "quorum"},
	}
	for name, text := range scripts.Scripts() {
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
				for _, reply := range []string{"> 0", "-1", "text", "{0, first, last}"} {
					delete(c.replies, reply)
				}
			}
			replies := map[string]bool{}
			for _, call := range calls[name] {
				c.note(call.reply, false, replies)
			}
			require.Equal(t, c.replies, replies, "documented and produced replies")
			requireCounts(t, name, calls[name])

			kind, _, _ := strings.Cut(name, "_")
			if commands[kind] == nil {
				kind = "plain"
			}
			for _, m := range bodyCall.FindAllStringSubmatch(c.body, -1) {
				kinds := append(shared[name], kind)
				if m[1] == "LLEN" && kind == "plain" { // inspect asks it for the queue that a fair lock has
					kinds = []string{"fair"}
				}
				for _, kind := range kinds {
					commands[kind][strings.ToLower(strings.TrimSuffix(m[1]+"|"+m[2], "|"))] = true
				}
			}
		})
	}
	for kind, listed := range map[string][]string{"plain": scripts.Commands(), "fair": scripts.FairCommands(), "semaphore": scripts.SemaphoreCommands(), "quorum": scripts.QuorumCommands(), "rwlock": scripts.RWLockCommands()} {
		used := append(slices.Collect(maps.Keys(commands[kind])), "eval", "evalsha")
		require.ElementsMatch(t, used, listed, kind)
	}
}

// requireCounts requires that a script was called with as many keys and arguments as its
// contract names, and if it does for many locks what another does for one, each lock with those
// of the other.
func requireCounts(t *testing.T, name string, calls []recorded) {
	t.Helper()
	one, isEach := strings.CutSuffix(name, "_each")
	isEach = isEach || name == "quorum_acquire"
	for _, kind := range []string{"KEYS", "ARGV"} {
		of := one
		if kind == "ARGV" {
			of = strings.Replace(one, "quorum_acquire", "acquire", 1)
		}
		c, sent := contractOf(scripts.Scripts()[of]), map[int]bool{}
		for _, call := range calls {
			counts := map[string]int{"KEYS": len(call.keys), "ARGV": len(call.args)}
			if isEach {
				counts["KEYS"] = must(strconv.Atoi(call.args[0]))(t)
				counts["ARGV"] = (len(call.args) - 1) / (len(call.keys) / counts["KEYS"])
			}
			sent[counts[kind]] = true
		}
		count, list := c.count(kind)
		least := count - c.optional[kind]
		for n := range sent {
			require.True(t, list && n >= count || !list && (n == count || n == least), "%d %s", n, kind)
		}
		require.True(t, list || sent[least], "%d %s", least, kind)
	}
}
