package scripts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
				n, want := plain.user(t, s, "least"), Refused
				if worked {
					acquired(t, n.Node, "k", ownA)
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
	n := plain.user(t, s, "least")
	acquired(t, n.Node, "k", ownA)
	_, err := n.Acquire(bounded(t), "other", ownA, lease)
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, Refused, OutcomeOf(err))
	s.Do(t, "ACL", "SETUSER", "least", "-hset")
	s.Do(t, "DEL", "k")
	_, err = n.Acquire(bounded(t), "k", ownA, lease)
	require.Equal(t, Refused, OutcomeOf(err))
	require.False(t, Permanent(err))
}
