package scripts

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestVotedAcquire(t *testing.T) {
	s, n, vote := startActive(t)
	for _, v := range []*Vote{vote, nil} {
		for _, f := range []bool{false, true} {
			get := func(owner string) NodeReply {
				t.Helper()
				b, err := acquireVoted(n, bounded(t), v, "k", owner, lease, f)
				require.NoError(t, err)
				return b
			}
			called := serverMicros(t, s)
			b := get(ownA)
			require.True(t, b.OK)
			if f { // the server's clock, between those two readings of it
				require.GreaterOrEqual(t, b.Clock, called)
				require.LessOrEqual(t, b.Clock, serverMicros(t, s))
			} else {
				require.Zero(t, b.Clock)
			}

			before := state(t, s)
			b = get(ownB)
			require.Equal(t, ownA, b.Holder)
			require.False(t, b.OK || b.Gone || b.NoVote)
			require.InDelta(t, lease, b.Remaining, float64(slack))
			require.Equal(t, before, state(t, s))
			s.Do(t, "PERSIST", "k")
			require.Equal(t, NodeReply{Acquired: Acquired{Remaining: NoExpiry}, Holder: ownA}, get(ownB))

			require.NoError(t, undo(n, bounded(t), "k", ownA, true))
			require.Equal(t, NodeReply{Acquired: Acquired{Gone: true}}, get(ownA))
			s.Do(t, "DEL", "k", tombstone("k", ownA), counter("k"))
		}
	}
}

// Of many, each is taken or refused for itself.
func TestVotedAcquireMany(t *testing.T) {
	s, n, vote := startActive(t)
	for _, v := range []*Vote{vote, nil} {
		for _, f := range []bool{false, true} {
			s.Do(t, "SET", "string", "x")
			require.NoError(t, undo(n, bounded(t), "given up", ownA, true))
			acquired(t, n, "held", ownB)
			var asks []Ask
			for _, key := range []string{"string", "free", "held", "given up", "also free"} {
				asks = append(asks, Ask{key, ownA, lease})
			}
			said := make([]NodeReply, len(asks))
			require.NoError(t, n.AcquireVoted(bounded(t), v, f, asks, said))
			require.Equal(t, Refused, OutcomeOf(said[0].Err))
			require.ErrorContains(t, said[0].Err, "WRONGTYPE")
			require.Equal(t, ownB, said[2].Holder)
			require.False(t, said[2].OK)
			require.Equal(t, NodeReply{Acquired: Acquired{Gone: true}}, said[3])
			for _, i := range []int{1, 4} {
				require.True(t, said[i].OK)
				require.NoError(t, said[i].Err)
				require.Equal(t, f, said[i].Clock > 0)
				m := s.Do(t, "HKEYS", asks[i].Key)
				held, err := m.AsStrSlice()
				require.NoError(t, err)
				require.Equal(t, []string{ownA}, held)
			}
			for _, a := range asks {
				s.Do(t, "DEL", a.Key, counter(a.Key), tombstone(a.Key, ownA))
			}
		}
	}
	acquired(t, n, "held", ownB)
	s.Do(t, "SET", marker, "other")
	said := make([]NodeReply, 2)
	require.NoError(t, n.AcquireVoted(bounded(t), vote, false, []Ask{{"free", ownA, lease}, {"held", ownA, lease}}, said))
	require.Equal(t, []NodeReply{{NoVote: true}, {NoVote: true}}, said)
}

func TestG5_VotedAcquireRepeated(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	n := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }))
	vote := activated(t, n)
	lost := p.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVALSHA" })
	_, err := acquireVoted(n, bounded(t), vote, "k", ownA, lease, false)
	require.Equal(t, Unknown, OutcomeOf(err))
	<-lost
	before := state(t, s)
	require.Contains(t, before, "k")
	require.True(t, voted(t, n, vote, ownA).OK)
	require.Equal(t, before, state(t, s), "the expiry counts from the first")
}

// A server that forgot the scripts may have forgotten the locks: nothing brings
// them back but a check, which then finds all as it was.
func TestGuard_F23_ScriptFlushCostsACheck(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	n := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }))
	vote := activated(t, n)
	s.Do(t, "SCRIPT", "FLUSH")
	p.OnRequest(func(cmd []string) redistest.Verdict {
		if cmd[0] == "EVAL" && strings.Contains(cmd[1], vote.marker) {
			t.Error("a script that names a vote was sent as text")
		}
		return redistest.Pass
	})
	requireNoVote(t, s, n, vote)
	before := state(t, s)
	said, again := checked(t, n, Mark)
	require.False(t, said.Marked)
	require.Equal(t, vote, again)
	require.Equal(t, before, state(t, s))
	require.True(t, voted(t, n, vote, ownA).OK)
}

func TestGuard_RestartedEmpty(t *testing.T) {
	s, n, vote := startActive(t)
	require.True(t, voted(t, n, vote, ownA).OK)
	s.Restart()
	requireQuarantine(t, s, n, vote)
}

// Not even a server that kept all of its data votes by the text of an earlier boot.
func TestGuard_RestartedWithItsData(t *testing.T) {
	s, n, vote := startActive(t, "--appendonly", "yes", "--appendfsync", "always")
	s.Restart()
	dialAgain(t, n)
	for _, how := range []CheckMode{Observe, Activate} {
		said, none, err := n.CheckNode(bounded(t), how, newEpoch(), ofThree(longest), strings.Fields(vote.marker)[wordEpoch])
		require.NoError(t, err)
		require.Negative(t, said.Left)
		require.False(t, has(none))
		require.False(t, said.Marked)
	}
	require.Equal(t, vote.marker, markerOf(t, s))
	requireQuarantine(t, s, n, vote)
}

func TestGuard_Flushed(t *testing.T) {
	s, n, vote := startActive(t)
	require.True(t, voted(t, n, vote, ownA).OK)
	s.Do(t, "FLUSHALL")
	requireQuarantine(t, s, n, vote)
	for range 2 { // and again under quarantine
		s.Do(t, "FLUSHALL")
		requireQuarantine(t, s, n, vote)
	}
}

// requireQuarantine requires that the old vote is void, that a check begins a
// quarantine, and that the old vote is void then, too.
func requireQuarantine(t *testing.T, s *redistest.Server, n *Node, vote *Vote) {
	t.Helper()
	dialAgain(t, n)
	requireNoVote(t, s, n, vote)
	said, none := checked(t, n, Mark)
	require.True(t, said.Marked)
	require.Positive(t, said.Left)
	require.False(t, has(none))
	requireNoVote(t, s, n, vote)
}

// dialAgain has the client find out that its connections are gone.
func dialAgain(t *testing.T, n *Node) {
	t.Helper()
	until(t, func() bool {
		_, err := n.runID(bounded(t))
		return err == nil
	})
	until(t, func() bool {
		conn, done := n.client.Dedicate()
		defer done()
		return conn.Do(bounded(t), conn.B().Ping().Build()).Error() == nil
	})
}

func follow(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do(t, "REPLICAOF", host, port)
	until(t, func() bool {
		info := replica.Do(t, "INFO", "replication")
		text, err := info.ToString()
		return err == nil && strings.Contains(text, "master_link_status:up")
	})
}

func promote(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.Do(t, "REPLICAOF", "NO", "ONE")
}

const quickSync = "--repl-diskless-sync-delay"

func TestGuard_PromotedReplica(t *testing.T) {
	master, s, first, vote := replicated(t)
	n := NewNode(s.Client(t))
	_, none, err := n.CheckNode(bounded(t), Mark, newEpoch(), ofThree(longest), "")
	require.ErrorContains(t, err, "READONLY")
	require.False(t, has(none))
	promote(t, s)
	require.True(t, voted(t, first, vote, ownA).OK)
	require.Contains(t, state(t, master), "k")
	requireQuarantine(t, s, n, vote)
}

// A replica that takes writes has its master's marker and replication ID, but another boot.
func TestGuard_ReplicaThatTakesWrites(t *testing.T) {
	redistest.NeedRedis7(t, keepsScripts)
	_, s, _, vote := replicated(t)
	s.Do(t, "CONFIG", "SET", "replica-read-only", "no")
	requireQuarantine(t, s, NewNode(s.Client(t)), vote)
}

// replicated is a node with a replica that has its data. A first replica gives its
// master a new replication ID.
func replicated(t *testing.T) (master, replica *redistest.Server, n *Node, vote *Vote) {
	t.Helper()
	master, n = start(t, quickSync, "0")
	replica = redistest.Start(t, quickSync, "0")
	follow(t, replica, master)
	vote = activated(t, n)
	until(t, func() bool { return markerOf(t, replica) == vote.marker })
	return master, replica, n, vote
}

// A master that was demoted, got another node's data and was promoted again still
// has its scripts and its run id.
func TestGuard_PromotedBackWithAnothersData(t *testing.T) {
	other, _, _ := startActive(t, quickSync, "0")
	s, n, vote := startActive(t)
	require.True(t, voted(t, n, vote, ownA).OK)
	follow(t, s, other)
	promote(t, s)
	requireScriptsKnown(t, s, vote)
	requireQuarantine(t, s, n, vote)
}

// From its own replica, which lagged, it even gets its own marker back: nothing but
// the replication ID tells.
func TestGuard_PromotedBackWithItsOwnOldData(t *testing.T) {
	s, lagging, n, vote := replicated(t)
	promote(t, lagging)
	require.True(t, voted(t, n, vote, ownA).OK)
	follow(t, s, lagging)
	promote(t, s)
	require.Equal(t, vote.marker, markerOf(t, s))
	require.NotContains(t, state(t, s), "k")
	requireScriptsKnown(t, s, vote)
	requireQuarantine(t, s, n, vote)
}

func requireScriptsKnown(t *testing.T, s *redistest.Server, vote *Vote) {
	t.Helper()
	m := s.Do(t, "SCRIPT", "EXISTS", vote.acquire.sha)
	known, err := m.AsIntSlice()
	require.NoError(t, err)
	require.Equal(t, []int64{1}, known)
}

// What the node says is no more than words between quotes.
func TestVoteTextIsSafe(t *testing.T) {
	for _, text := range []string{"'", "\\", "\n", "\r", "]]", "'; return 1 --", "\x00", "é"} {
		v := newVote("a b"+text+"c", "master_replid:"+text)
		before, after, named := strings.Cut(quorumAcquire.text, noVote)
		require.True(t, named)
		rest, whole := strings.CutPrefix(v.acquire.text, before)
		require.True(t, whole)
		line, whole := strings.CutSuffix(rest, after)
		require.True(t, whole)
		require.Regexp(t, `^local marker, replID = '[a-zA-Z0-9 _:]+', '[a-zA-Z0-9 _:]+'\n$`, line)
	}
	shas := []string{quorumAcquire.sha, newVote("m", "r").acquire.sha, newVote("m", "s").acquire.sha, newVote("n", "r").acquire.sha}
	slices.Sort(shas)
	require.Len(t, slices.Compact(shas), 4)
}
