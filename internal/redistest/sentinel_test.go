package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A fail-over, by the master's death or by command, keeps what its replicas were told and
// loses what was held from them. Clients follow.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*Sentinel) *Server{
		"killed":  (*Sentinel).KillMaster,
		"command": (*Sentinel).Failover,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := StartSentinel(t)
			c := s.Client(t)
			set := func(key string) {
				require.Eventually(t, func() bool {
					_, err := do(t, c, "SET", key, "v")
					return err == nil
				}, Patience, time.Millisecond)
			}
			for round := range 2 {
				held := round == 1
				set("told")
				m := s.Master().Do(t, "WAIT", "2", "5000")
				told, err := m.ToInt64()
				require.NoError(t, err)
				require.EqualValues(t, 2, told)
				if held {
					s.HoldReplication(t, true)
					set("held")
				}
				old := begin(s)
				master := s.AwaitMaster(t, old)
				require.Len(t, s.Replicas(), 2)
				require.NotContains(t, s.Replicas(), master)
				m = master.Do(t, "EXISTS", "told", "held")
				found, err := m.ToInt64()
				require.NoError(t, err)
				require.EqualValues(t, 1, found)
				set("after")
				require.Eventually(t, func() bool { // the client may have written to the old one a moment ago
					set("after")
					m := master.Do(t, "EXISTS", "after")
					found, err := m.ToInt64()
					return err == nil && found == 1
				}, Patience, time.Millisecond)
				if held {
					s.HoldReplication(t, false)
				}
				if name == "killed" {
					old.Restart()
				}
				s.AwaitReplicas(t)
				require.Contains(t, s.Replicas(), old)
			}
		})
	}
}
