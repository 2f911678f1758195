package scripts

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/check"
)

// recorder is a client that notes with how many keys and arguments each script was
// called, and which kinds of reply it gave. Of a script for many locks it notes how many
// each lock had.
type recorder struct {
	rueidis.Client
	vote                *Vote
	keys, args, replies map[string]map[string]bool // name -> what was seen
	names               map[string]bool            // of keys
}

func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	if reply, err := result.ToMessage(); err == nil {
		r.note(words, reply)
	}
	return result
}

func (r *recorder) note(words []string, reply rueidis.RedisMessage) {
	name := ""
	for of, text := range Scripts() {
		if words[1] == text || words[1] == scriptOf(text).sha || of == "quorum_acquire" && words[1] == r.vote.acquire.sha {
			name = of
		}
	}
	if name == "" { // no script
		return
	}
	keys, _ := strconv.Atoi(words[2])
	for _, name := range words[3 : 3+keys] {
		r.names[name] = true
	}
	args := len(words) - 3 - keys
	if isEach(name) {
		per, _ := strconv.Atoi(words[3+keys])
		keys, args = per, (args-1)/(keys/per)
	}
	for seen, what := range map[*map[string]map[string]bool][]string{
		&r.keys: {strconv.Itoa(keys)}, &r.args: {strconv.Itoa(args)}, &r.replies: kinds(name, reply),
	} {
		for _, w := range what {
			if (*seen)[name] == nil {
				(*seen)[name] = map[string]bool{}
			}
			(*seen)[name][w] = true
		}
	}
}

// isEach says whether a script does with many locks what another does with one.
func isEach(name string) bool {
	return strings.HasSuffix(name, "_each") || name == "quorum_acquire"
}

// kinds returns how the contract of a script writes a reply.
func kinds(name string, m rueidis.RedisMessage) (all []string) {
	if v, err := m.ToInt64(); err == nil {
		counts := strings.Contains(name, "acquire") || strings.HasPrefix(strings.TrimPrefix(name, "one of "), "release") || name == "fair_enter"
		if v > 0 && counts {
			return []string{"> 0"}
		}
		return []string{strconv.FormatInt(v, 10)}
	}
	if !m.IsArray() {
		return []string{"text"}
	}
	values, _ := m.ToArray()
	each := func(values []rueidis.RedisMessage, name string) {
		for _, v := range values {
			all = append(all, kinds(name, v)...)
		}
	}
	switch {
	case name == "one of quorum_acquire" && len(values) == 2:
		return []string{"{left, holder}"}
	case name == "one of quorum_acquire" && len(values) == 3:
		return []string{"{0, counter, clock}"}
	case name == "one of acquire_each" && len(values) == 3, name == "acquire":
		return []string{"{0, first, last}"}
	case strings.HasPrefix(name, "one of") && len(values) == 1:
		return []string{"{text}"}
	case name == "quorum_acquire" && len(values) == 1 && kinds("", values[0])[0] == "-3":
		return []string{"{-3}"}
	case isEach(name):
		all = []string{"{answer...}"}
		each(values, "one of "+name)
	case name == "quorum_check" && len(values) == 7:
		return []string{"{run id, version, policy, replID, marker, left, new}"}
	case name == "quorum_renew":
		all = []string{"{marker, answer...}"}
		each(values[1:], name)
	case name == "inspect" && len(values) == 0:
		return []string{"{}"}
	case name == "inspect":
		return []string{"{owner, entries, left, label}"}
	case name == "fair_inspect" && len(values) == 1:
		return []string{"{waiting}"}
	case name == "fair_inspect":
		return []string{"{waiting, owner, entries, left, label}"}
	case name == "fair_queue":
		return []string{"{owner, alive, label...}"}
	case name == "fair_heartbeat":
		each(values, "one of heartbeat")
	case name == "one of heartbeat":
		return []string{"{" + kinds("", values[0])[0] + ", grant, place, label, absent...}"}
	case name == "fair_enter":
		all = []string{"{java, distance, grant, place, state...}"}
		each(values[4:], "state")
	case name == "renew":
		each(values, name)
	default:
		return kinds(name, values[0])
	}
	return all
}

// more are situations that bring about the other replies.
var more = map[string]func(r *harness){
	"endless":          func(r *harness) { r.acquire(ofB(1)); r.s.Do(r.t, "PERSIST", "k") },
	"labelled":         func(r *harness) { r.s.Do(r.t, "HSET", "k", ofB(1), "1 a b"); r.s.Do(r.t, "PEXPIRE", "k", "60000") },
	"labelled endless": func(r *harness) { r.s.Do(r.t, "HSET", "k", ofB(1), "1 a b") },
	"held by us":       func(r *harness) { r.acquire(ofA(1)) },
	"another waits":    func(r *harness) { r.follow(ofA(1), ofA(3)) },
	"Java's turn":      func(r *harness) { r.s.Do(r.t, "RPUSH", queue("k"), ofJ(1)) },
	"given up":         func(r *harness) { r.s.Do(r.t, "SET", tombstone("k", ofA(1)), "1") },
	"string":           func(r *harness) { r.s.Do(r.t, "SET", "k", "x") },
	"another marker":   func(r *harness) { r.s.Do(r.t, "SET", marker, "x") },
	"listener":         func(r *harness) { r.acquire(ofA(1)); r.subscribe(Channel("k")) },
	"no messages": func(r *harness) {
		r.acquire(ofA(1))
		r.s.Do(r.t, "ACL", "SETUSER", "default", "-publish")
	},
}

// record makes every call in every situation.
func record(t *testing.T) *recorder {
	t.Helper()
	h := ofQuorum.harness(t)
	seen := func() map[string]map[string]bool { return map[string]map[string]bool{} }
	r := &recorder{Client: h.s.Client(t), vote: h.vote, keys: seen(), args: seen(), replies: seen(), names: map[string]bool{}}
	c := clientOn(r)
	c.vote = h.vote
	for _, all := range []map[string]func(*harness){situations, more} {
		for _, bring := range all {
			for _, f := range families {
				for _, call := range f.calls {
					h.clear()
					bring(h)
					_ = call(bounded(t), c, "k", ofA(1))
					h.s.Do(t, "ACL", "SETUSER", "default", "+publish")
					h.unsubscribe(Channel("k"))
				}
			}
		}
	}
	return r
}

// Whatever else than locks a script is given is among the names that are refused.
func TestNamesOfAllScripts(t *testing.T) {
	refused := map[string]bool{}
	for name := range record(t).names {
		if name != "k" {
			require.Error(t, CheckKey(name), name)
		}
		prefix, _, _ := strings.Cut(name, ":")
		refused[prefix] = true
	}
	for _, h := range check.Helpers {
		require.Equal(t, h.Prefix != check.LatchPrefix, refused[h.Prefix], h.Prefix)
	}
}
