package scripts

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// allQuorum are the scripts of a quorum by the files of which they are made. What
// names a vote begins with a line of its own.
func allQuorum(vote *Vote) map[string]script {
	return map[string]script{
		"quorum_look":  quorumLook,
		"quorum_renew": quorumRenew,
		"quorum_end":   quorumEnd,
		"quorum_fence": quorumFence,

		"release_each": releaseEach,

		"acquire acquire_each":                            acquireEach,
		"acquire_fenced acquire_each":                     acquireEachFenced,
		"acquire quorum_acquire acquire_each":             quorumAcquireEach,
		"quorum_vote acquire acquire_each":                vote.acquire,
		"quorum_vote acquire quorum_acquire acquire_each": vote.fenced,
	}
}

// quorumRecorder is a client that notes how scripts were called and what they
// replied.
type quorumRecorder struct {
	rueidis.Client
	vote                *Vote
	keys, args, replies map[string]map[string]bool // name in allQuorum -> what was seen
}

func (r *quorumRecorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	if reply, err := result.ToMessage(); err == nil {
		r.note(words, reply)
	}
	return result
}

func (r *quorumRecorder) note(words []string, reply rueidis.RedisMessage) {
	for name, s := range allQuorum(r.vote) {
		if words[1] == s.sha || words[1] == s.text {
			keys, _ := strconv.Atoi(words[2])
			note(r.keys, name, words[2])
			note(r.args, name, strconv.Itoa(len(words)-3-keys))
			for _, class := range quorumClasses(name, reply) {
				note(r.replies, name, class)
			}
		}
	}
}

// quorumClasses returns how the contracts write a reply.
func quorumClasses(name string, m rueidis.RedisMessage) []string {
	if v, err := m.ToInt64(); err == nil {
		return []string{strconv.FormatInt(v, 10)}
	}
	values, _ := m.ToArray()
	switch {
	case name == "quorum_look":
		return []string{"{" + strconv.Itoa(len(values)) + "}"}
	case name == "quorum_renew":
		all := []string{"{marker, answer...}"}
		for _, v := range values[1:] {
			if v.IsString() {
				all = append(all, "text")
			} else {
				all = append(all, quorumClasses(name, v)...)
			}
		}
		return all
	case len(values) == 1 && values[0].IsInt64() && quorumClasses(name, values[0])[0] == "-3":
		return []string{"{-3}"}
	}
	all := []string{"{answer...}"}
	for _, v := range values { // of an acquire
		parts, _ := v.ToArray()
		switch {
		case v.IsString():
			all = append(all, "text")
		case len(parts) == 2:
			all = append(all, "{left, holder}")
		case len(parts) == 3:
			all = append(all, quorumClasses(name, parts[0])...)
		default:
			all = append(all, quorumClasses(name, v)...)
		}
	}
	return all
}

var (
	quorumName   = regexp.MustCompile(`^-- ((?:KEYS|ARGV)\[[^]]+\]) +(optional)?`)
	quorumReply  = regexp.MustCompile(`^-- (?:Reply)? +(\{[^}]*\}|text|-?\d+|> 0)(?: |$)`)
	quorumStatus = "{status, first, last}" // its parts stand below it
)

// Header, body and Go wrapper of each script say the same.
func TestQuorumContracts(t *testing.T) {
	s, n, vote := startRipe(t)
	r := &quorumRecorder{
		Client: s.Client(t), vote: vote,
		keys: map[string]map[string]bool{}, args: map[string]map[string]bool{}, replies: map[string]map[string]bool{},
	}
	everyQuorumReply(t, r, n, vote, func(args ...string) { s.Do(t, args...) })

	entries, err := files.ReadDir(".")
	require.NoError(t, err)
	used := map[string]bool{}
	commands := map[string]bool{"eval": true, "evalsha": true, "script|load": true}
	for name, script := range allQuorum(vote) {
		t.Run(name, func(t *testing.T) {
			parts := strings.Fields(name)
			documented, replies, optional, whole := map[string]bool{}, map[string]bool{}, 0, ""
			for _, part := range parts {
				used[part+".lua"] = true
				text := content(t, part+".lua")
				head, _ := split(text)
				switch {
				case part == "acquire" && slices.Contains(parts, "quorum_acquire"):
					text = "local function take(KEYS, ARGV)\n" + text + "end\n"
				case part == "acquire", part == "acquire_fenced", part == "quorum_acquire":
					text = "local function acquire(KEYS, ARGV)\n" + text + "end\n"
				}
				whole += text
				require.Regexp(t, `^-- `+part+`: `, head)
				_, contract, _ := strings.Cut(head, "-- Reply")
				contract, _, repeats := strings.Cut(contract, "-- Repeat:")
				require.Equal(t, part != "quorum_vote", repeats, part)
				for line := range strings.SplitSeq(head, "\n") {
					if m := quorumName.FindStringSubmatch(line); m != nil {
						if !documented[m[1]] && m[2] != "" {
							optional++
						}
						documented[m[1]] = true
					}
				}
				for line := range strings.SplitSeq("-- Reply"+contract, "\n") {
					if m := quorumReply.FindStringSubmatch(line); m != nil && m[1] != quorumStatus {
						replies[m[1]] = true
					}
				}
			}
			text := strings.TrimPrefix(script.text, "local marker, replID = '"+vote.marker+"', 'master_replid:")
			if text != script.text {
				_, text, _ = strings.Cut(text, "\n")
			}
			require.Equal(t, whole, text)

			body := map[string]bool{}
			for _, part := range parts {
				_, code := split(content(t, part+".lua"))
				for _, found := range bodyName.FindAllString(code, -1) {
					body[strings.ReplaceAll(strings.ReplaceAll(found, " ", ""), "#KEYS", "n")] = true
				}
				for _, m := range bodyCall.FindAllStringSubmatch(code, -1) {
					commands[strings.ToLower(m[1])] = true
				}
			}
			require.Equal(t, documented, body)

			if name == "quorum_look" {
				requireLookReply(t, replies)
				replies = map[string]bool{"{7}": true}
			}
			many := slices.Contains(parts, "acquire_each")
			if many { // it answers in the place of acquire
				delete(replies, "> 0")
				delete(replies, "-1")
			}
			require.Equal(t, replies, r.replies[name], "documented and produced replies")

			if name == "quorum_renew" { // three locks, each with an owner and its entries
				require.Equal(t, map[string]bool{"4": true}, r.keys[name])
				require.Equal(t, map[string]bool{"7": true}, r.args[name])
				return
			}
			if name == "quorum_end" { // one lock, or six of which three have another key
				require.Equal(t, map[string]bool{"1": true, "2": true, "9": true}, r.keys[name])
				require.Equal(t, map[string]bool{"3": true, "18": true}, r.args[name])
				return
			}
			if name == "release_each" { // three locks, each with an owner and its channel
				require.Equal(t, map[string]bool{"3": true, "6": true}, r.keys[name]) // with their tombstones
				require.Equal(t, map[string]bool{"6": true}, r.args[name])
				return
			}
			for kind, sent := range map[string]map[string]bool{"KEYS": r.keys[name], "ARGV": r.args[name]} {
				count := 0
				for name := range documented {
					if strings.HasPrefix(name, kind) {
						count++
					}
				}
				if many && kind == "ARGV" { // the number of locks
					count++
				}
				want := map[string]bool{strconv.Itoa(count): true}
				if optional > 0 && (kind == "KEYS") == documented["KEYS[2]"] {
					want[strconv.Itoa(count-1)] = true
				}
				require.Equal(t, want, sent, kind)
			}
		})
	}
	for _, e := range entries {
		if ofSeveral(e.Name()) {
			require.True(t, used[e.Name()], e.Name())
		}
	}
	// What the quorum shares with one Redis.
	for _, s := range []script{recount, forceRelease, inspect} {
		for _, m := range bodyCall.FindAllStringSubmatch(s.text, -1) {
			commands[strings.ToLower(m[1])] = true
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(commands)), slices.Sorted(slices.Values(QuorumCommands())))
}

// ofSeveral says whether a script is of a quorum, or does with many plain locks what
// another does with one.
func ofSeveral(file string) bool {
	return strings.HasPrefix(file, "quorum_") || file == "acquire_each.lua" || file == "release_each.lua"
}

// requireLookReply requires that the one reply of look is documented by its parts.
func requireLookReply(t *testing.T, replies map[string]bool) {
	t.Helper()
	require.Equal(t, map[string]bool{"{run id, version, policy, replID, marker, left, new}": true}, replies)
}

// everyQuorumReply brings about every reply of every script of a quorum. n has no
// recorder.
func everyQuorumReply(t *testing.T, r *quorumRecorder, n *Node, vote *Vote, do func(args ...string)) {
	t.Helper()
	ctx, recorded := bounded(t), NewNode(r)
	call := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	each := func(owner string) (NodeReply, error) {
		said := make([]NodeReply, 1)
		err := recorded.AcquireEach(ctx, fencingHour, []Ask{{"k", owner, lease}}, said)
		return said[0], errors.Join(err, said[0].Err)
	}
	for _, v := range []*Vote{nil, vote} {
		for _, ask := range []func(owner string) (NodeReply, error){
			func(owner string) (NodeReply, error) { return acquireVoted(recorded, ctx, v, "k", owner, lease, false) },
			func(owner string) (NodeReply, error) { return acquireVoted(recorded, ctx, v, "k", owner, lease, true) },
			each,
		} {
			get := func(owner string) { call(ask(owner)) }
			get(ownA)
			get(ownB)
			call(nil, undo(recorded, ctx, "k", ownA, true))
			get(ownA)
			do("SET", marker, "other")
			if v != nil {
				get(ownB)
			}
			do("SET", marker, vote.marker)
			do("DEL", "k", counter("k"), tombstone("k", ownA))
			do("SET", "k", "x")
			_, err := ask(ownA)
			require.Equal(t, Refused, OutcomeOf(err))
			do("DEL", "k")
		}
	}
	call(nil, undo(recorded, ctx, "k", ownA, false))

	call(recorded.WriteFence(ctx, "k", ownA, 1, 0))
	call(n.Acquire(ctx, "k", ownA, lease))
	call(recorded.WriteFence(ctx, "k", ownA, 1, 0))

	do("SET", "string", "x")
	answers := make([]Answer, 3)
	call(recorded.RenewVoted(ctx, vote, lease, []string{"k", "free", "string"}, []string{ownA, ownA, ownA}, make([]int, 3), answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs}, answers)

	ends := make([]End, 3)
	call(nil, recorded.ReleaseEach(ctx, []Hold{{"k", ownA}, {"free", ownA}, {"string", ownA}}, ends))
	require.True(t, ends[0].Ours)
	call(n.Acquire(ctx, "k", ownA, lease))
	do("ACL", "SETUSER", "default", "-publish")
	call(nil, recorded.ReleaseEach(ctx, []Hold{{"k", ownA}, {"k", ownA}, {"k", ownA}}, ends))
	do("ACL", "SETUSER", "default", "+publish")
	call(nil, recorded.CleanUpEach(ctx, []Hold{{"k", ownA}, {"free", ownA}, {"string", ownA}}, ends))

	everyEnd := []Ending{
		{Key: "k", Owner: ownB, Tell: true}, {Key: "free", Owner: ownA}, {Key: "string", Owner: ownA, Tell: true, Doubt: true},
		{Key: "k", Owner: ownB, LastFence: 1}, {Key: "other", Owner: ownA, LastFence: 1}, {Key: "more", Owner: ownA},
	}
	call(n.Acquire(ctx, "k", ownB, lease))
	ends = make([]End, len(everyEnd))
	call(nil, recorded.EndEach(ctx, everyEnd, ends))
	require.True(t, ends[0].Ours)
	call(n.Acquire(ctx, "k", ownB, lease))
	do("ACL", "SETUSER", "default", "-publish")
	call(nil, recorded.EndEach(ctx, everyEnd, ends))
	require.Equal(t, -1, ends[0].Listeners)
	do("ACL", "SETUSER", "default", "+publish")

	// A look runs on a connection of its own.
	for _, began := range [][]string{nil, {"none"}} {
		args := append([]string{marker, newEpoch(), millis(longest), "3", string(Mark)}, began...)
		cmd := r.B().Eval().Script(quorumLook.text).Numkeys(1).Arg(args...).Build()
		call(nil, r.Do(ctx, cmd).Error())
	}
}
