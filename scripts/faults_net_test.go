package scripts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A call whose reply is lost has an unknown outcome, and its repeat leaves what
// one call leaves.
func TestF6_ReplyLost(t *testing.T) {
	s, admin := start(t)
	p := redistest.NewProxy(t, s.Addr())
	n := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }))
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "FLUSHALL")
			require.NoError(t, verb(bounded(t), admin, "k", ownA)) // the script is known from now on
			s.Do(t, "FLUSHALL")
			if !strings.HasPrefix(name, "acquire") {
				acquired(t, admin, "k", ownA)
			}
			lost := p.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVALSHA" })
			err := verb(bounded(t), n, "k", ownA)
			require.Equal(t, Unknown, OutcomeOf(err), "%v", err)
			<-lost
			once := contents(t, s)
			require.NoError(t, verb(bounded(t), n, "k", ownA))
			require.Equal(t, once, contents(t, s))
		})
	}
}

// contents is what keys hold, without their expiries and fence numbers.
func contents(t *testing.T, s *redistest.Server) map[string]string {
	all := state(t, s)
	for key, value := range all {
		if key == counter("k") {
			value = ""
		}
		all[key] = value[:max(0, strings.LastIndex(value, "|"))]
	}
	return all
}

func TestF15_SilenceIsUnknownAndEndsInTime(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "other", ownA)
	s.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := n.Acquire(ctx, "k", ownA, lease)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, Unknown, OutcomeOf(err))
	s.Resume()
	// It ran all the same.
	until(t, func() bool {
		h, err := n.Inspect(bounded(t), "k")
		return err == nil && h.Owner == ownA
	})
}

func TestF16_CutAndDialFailure(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Kill()
	until(t, func() bool {
		_, err := n.Acquire(bounded(t), "k", ownA, lease)
		require.Error(t, err)
		if o := OutcomeOf(err); o != Unavailable {
			require.Equal(t, Unknown, o, "%v", err) // the cut connection
			return false
		}
		return strings.Contains(err.Error(), "connection refused")
	})
	s.Restart()
	acquired(t, n, "k", ownA)
}

// The server's refusal reaches us only if rueidis sends nothing after HELLO; else
// it reads on and reports the cut.
func TestF19_MaxClients(t *testing.T) {
	s := redistest.Start(t)
	for name, c := range map[string]struct {
		change func(*rueidis.ClientOption)
		want   Outcome
	}{
		"default":    {func(*rueidis.ClientOption) {}, Unknown},
		"HELLO only": {func(o *rueidis.ClientOption) { o.ClientSetInfo = rueidis.DisableClientSetInfo }, Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNode(s.Client(t, c.change))
			acquired(t, n, "k", ownA)
			s.Do(t, "CONFIG", "SET", "maxclients", "1") // the administrator's
			s.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			until(t, func() bool {
				_, err := n.Acquire(bounded(t), "k", ownA, lease)
				require.Error(t, err)
				o := OutcomeOf(err)
				require.Contains(t, []Outcome{Unknown, Unavailable}, o, "%v", err)
				return o == c.want
			})
			s.Do(t, "CONFIG", "SET", "maxclients", "100")
			acquired(t, n, "k", ownA)
		})
	}
}

func TestClosedClientIsRefused(t *testing.T) {
	s, _ := start(t)
	client := s.Client(t)
	n := NewNode(client)
	acquired(t, n, "k", ownA)
	client.Close()
	_, err := n.Acquire(bounded(t), "k", ownA, lease)
	require.ErrorIs(t, err, rueidis.ErrClosing)
	require.Equal(t, Refused, OutcomeOf(err))
}
