package wire

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A client that was allowed to send scripts may be allowed it again, when the change of its user is through.
func TestF39_LapsedRights(t *testing.T) {
	s := redistest.Start(t)
	n := plain.user(t, s, nil, "least")
	acquired(t, n.Redis, "k", ownA)
	s.Do(t, "SCRIPT", "FLUSH")
	s.Do(t, "ACL", "SETUSER", "least", "-eval")
	_, err := n.Acquire(bounded(t), asking("k", ownA))
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, Unavailable, OutcomeOf(err))
	require.True(t, Lapsed(err))
	require.False(t, Permanent(err))
	require.True(t, Replied(err))
}

// A client that was closed says so for good, and not that it has gone over to another server.
func TestClosedClientIsRefused(t *testing.T) {
	_, onCluster := onCluster(t, 1, 0)
	for name, n := range map[string]*Redis{
		"one server": NewRedis(redistest.Start(t).Client(t), RedisSettings{}),
		"Sentinel":   NewRedis(redistest.StartSentinels(t).Start(t).Client(t), RedisSettings{}),
		"Cluster":    onCluster,
	} {
		t.Run(name, func(t *testing.T) {
			acquired(t, n, "k", ownA)
			n.client.Close()
			var err error
			until(t, func() bool { // a client of a Redis Cluster closes its connections one after the other
				_, err = n.Acquire(bounded(t), asking("k", ownA))
				return OutcomeOf(err) == Refused
			})
			require.ErrorIs(t, err, rueidis.ErrClosing)
		})
	}
}

// switching is a client of a Sentinel set that goes over to another server during the next call.
type switching struct {
	rueidis.Client
	now bool
}

func (*switching) Mode() rueidis.ClientMode { return rueidis.ClientModeSentinel }

func (c *switching) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if c.now {
		c.now = false
		return rueidis.NewErrorResult(rueidis.ErrClosing)
	}
	return c.Client.Do(ctx, cmd)
}

// A call that met a switch may have run, and the same call may succeed later.
func TestF25_ASwitchIsNoRefusal(t *testing.T) {
	redistest.NeedRedis7(t, keepsScripts)
	_, n, vote := startActive(t)
	client := &switching{Client: n.client}
	n = NewRedis(client, RedisSettings{})
	for name, call := range map[string]func() error{
		"Acquire": func() error {
			_, err := n.Acquire(bounded(t), asking("k", ownA))
			return err
		},
		"AcquireVoted": func() error { _, err := acquireVoted(n, bounded(t), vote, "k", ownA, false); return err },
		"Identify":     func() error { _, err := n.Identify(bounded(t)); return err },
		"CheckVote":    func() error { _, _, err := n.CheckVote(bounded(t), vote, ofThree(longest)); return err },
		"Ping":         func() error { return n.Ping(bounded(t)) },
	} {
		client.now = true
		require.Equal(t, Unknown, OutcomeOf(call()), name)
	}
}

// A replica is known by the whole text of Redis: a label may begin like it.
func TestF36_ALabelIsNoRefusal(t *testing.T) {
	for text, is := range map[string]bool{
		"READONLY You can't write against a read only replica. script: 1, on @user_script:1.": true,
		"@user_script: 1: -READONLY You can't write against a read only replica.":             true,
		"READONLY db-1/4711": false,
		"web-3/4711":         false,
	} {
		require.Equal(t, is, isReadOnly(text), text)
	}
}

// However often callers come and give up, one call of Dedicate is under way for them, and what it
// brings is given back, or goes to the next.
func TestF40_LateConnectionIsGivenBack(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	var c connections
	first, giveBack := client.Dedicate()
	id := must(first.Do(bounded(t), first.B().ClientId().Build()).ToInt64())(t)
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := c.borrow(ctx, client)
		cancel()
		require.Equal(t, errNoConnection, err)
		require.Equal(t, Unavailable, OutcomeOf(err))
		require.True(t, c.overdue())
		require.Equal(t, 1, c.asked)
	}
	giveBack()
	until(t, func() bool { return !c.overdue() })
	for range 2 {
		conn := must(c.borrow(bounded(t), client))(t)
		require.Equal(t, id, must(conn.Do(bounded(t), conn.B().ClientId().Build()).ToInt64())(t))
		conn.giveBack()
	}
}

// A label may read as the refusal of a replica. It is no reason to dial again, and the refusal of one lock of several is.
func TestALabelIsNoRefusalOfAReplica(t *testing.T) {
	s := redistest.Start(t)
	r := NewRedis(s.Client(t), RedisSettings{Label: readOnly + "replica."})
	require.True(t, must(r.Acquire(bounded(t), asking("k", ofA(1))))(t).OK)
	require.Equal(t, readOnly+"replica.", must(r.Inspect(bounded(t), "k"))(t).Label)
	_, again := redialed.Load(r.client)
	require.False(t, again)

	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	require.ErrorContains(t, errOf(each(bounded(t), r.ReleaseEach, ReleaseRequest{Key: "k", Owner: ofA(1)})), "READONLY")
	_, again = redialed.Load(r.client)
	require.True(t, again, "what refuses one lock of a call is one")
}
