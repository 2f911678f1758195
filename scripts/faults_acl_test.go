package scripts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// user makes a user with the least rights, less the commands left out, and
// returns a node that works as that user.
func user(t *testing.T, s *redistest.Server, name string, without ...string) *Node {
	t.Helper()
	rule := []string{"ACL", "SETUSER", name, "reset", "on", ">secret", "~k", "~redisson_lock_token:*", "~holdfast_gone:*",
		"resetchannels", "&redisson_lock__channel:*", "-@all", "+hello", "+ping"}
	for _, c := range Commands() {
		if !slices.Contains(without, c) {
			rule = append(rule, "+"+c)
		}
	}
	s.Do(t, rule...)
	return NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = name, "secret" }))
}

func TestF32_LeastRightsSuffice(t *testing.T) {
	s := redistest.Start(t)
	n := user(t, s, "least")
	for name, verb := range verbs {
		require.NoError(t, verb(bounded(t), n, "k", ownA), name)
		s.Do(t, "FLUSHALL")
	}
}

// Each command is taken away in turn. A verb that still ends well has done its
// work; one that fails says why and leaves everything as it was.
func TestF32_EachCommandRefused(t *testing.T) {
	s, admin := start(t)
	// Refusals that a verb rides out, by design.
	tolerated := map[string]string{
		"get": "release fenced", "set": "release fenced clean_up",
		"publish": "release release fenced clean_up force_release",
	}
	refused := map[string]int{}
	for _, command := range Commands() {
		n := user(t, s, "without-"+command, command)
		for _, name := range slices.Sorted(maps.Keys(verbs)) {
			for _, found := range []string{"free", "held", "held by another"} {
				s.Do(t, "FLUSHALL")
				switch found {
				case "held":
					_, err := admin.AcquireFenced(bounded(t), "k", ownA, lease, Fencing{Reserve: 10, Expiry: lease})
					require.NoError(t, err)
				case "held by another":
					acquired(t, admin, "k", ownB)
				}
				if command == "eval" { // needed only where the script is unknown
					s.Do(t, "SCRIPT", "FLUSH")
				}
				before := state(t, s)
				err := verbs[name](bounded(t), n, "k", ownA)
				requireExpiries(t, s)
				if err == nil {
					continue
				}
				refused[command]++
				require.Equal(t, Refused, OutcomeOf(err), "%s without %s: %v", name, command, err)
				require.NotContains(t, tolerated[command], name)
				after := state(t, s)
				if name == "acquire_fenced" { // it may have skipped numbers
					delete(before, counter("k"))
					delete(after, counter("k"))
				}
				require.Equal(t, before, after, "%s without %s", name, command)
			}
		}
	}
	for _, command := range Commands() {
		require.Equal(t, command != "publish", refused[command] > 0, command)
	}
}

func TestF32_ForeignKeysAndChannels(t *testing.T) {
	s := redistest.Start(t)
	n := user(t, s, "least")
	for name, verb := range verbs {
		err := verb(bounded(t), n, "other", ownA)
		require.ErrorContains(t, err, "NOPERM", name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
	require.Empty(t, state(t, s))

	s.Do(t, "ACL", "SETUSER", "least", "resetchannels")
	n = NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "least", "secret" }))
	acquired(t, n, "k", ownA)
	r, err := n.Release(bounded(t), "k", ownA, 0)
	require.NoError(t, err)
	require.Equal(t, Released{Ours: true, Listeners: -1}, r)
}

// A client that is refused what it has been allowed before may be allowed it again, when the
// change of a password or of a user is through. One that never was has to be mended.
func TestF39_LapsedRights(t *testing.T) {
	for _, c := range []struct {
		what  string
		begin []string
		code  string
	}{
		{"password", []string{"ACL", "SETUSER", "least", "resetpass", ">changed"}, "WRONGPASS"},
		{"evalsha", []string{"ACL", "SETUSER", "least", "-evalsha"}, "NOPERM"},
		{"eval", []string{"ACL", "SETUSER", "least", "-eval"}, "NOPERM"},
	} {
		for _, worked := range []bool{true, false} {
			t.Run(fmt.Sprint(c.what, worked), func(t *testing.T) {
				s := redistest.Start(t)
				n, want := user(t, s, "least"), Refused
				if worked {
					acquired(t, n, "k", ownA)
					want = Unavailable
				}
				s.Do(t, "SCRIPT", "FLUSH")
				s.Do(t, c.begin...)
				s.Do(t, "CLIENT", "KILL", "USER", "least")
				var err error
				until(t, func() bool {
					_, err = n.Acquire(bounded(t), "k", ownA, lease)
					require.Error(t, err)
					return strings.HasPrefix(err.Error(), c.code) // else the cut connection
				})
				require.Equal(t, want, OutcomeOf(err))
				require.Equal(t, worked, Lapsed(err))
				require.False(t, Permanent(err))
				require.True(t, Replied(err))
			})
		}
	}
}

// A right for a key, or for a command in a script, that is missing does not come back by itself.
func TestF32_MissingRightsDoNotLapse(t *testing.T) {
	s := redistest.Start(t)
	n := user(t, s, "least")
	acquired(t, n, "k", ownA)
	_, err := n.Acquire(bounded(t), "other", ownA, lease)
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, Refused, OutcomeOf(err))
	s.Do(t, "ACL", "SETUSER", "least", "-hset")
	s.Do(t, "DEL", "k")
	_, err = n.Acquire(bounded(t), "k", ownA, lease)
	require.Equal(t, Refused, OutcomeOf(err))
	require.False(t, Permanent(err))
}
