package fair_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// modelTickTime is what a tick lasts on a real server: longer than a walk, so that
// nothing expires there but by the test's own doing.
const modelTickTime = 20 * time.Second

// modelReal is a real server, and the clients whose calls are compared with the
// model's.
type modelReal struct {
	t          *testing.T
	rules      *modelRules
	server     *redistest.Server
	redis      *wire.Redis
	fairs      [modelClients]*wire.Fair
	uuids      [modelClients]string
	key        string
	subscriber rueidis.DedicatedClient
	heard      chan rueidis.PubSubMessage
	listens    [modelClients]bool // to the inboxes of key
	fence      int64              // largest number that was given away and not back
}

func newModelReal(t *testing.T, x *modelRules) *modelReal {
	r := &modelReal{t: t, rules: x, server: redistest.Start(t), heard: make(chan rueidis.PubSubMessage, 16)}
	client := r.server.Client(t)
	r.redis = wire.NewRedis(client, wire.RedisSettings{})
	for c := range r.fairs {
		r.uuids[c] = fmt.Sprintf("3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a0%d", c)
		r.fairs[c] = wire.NewFair(r.redis, wire.FairSettings{
			LockerID: r.uuids[c], WaiterTTL: modelTime(x.stale), GrantLease: modelTime(x.first), Members: int(x.members),
			Fencing: wire.Fencing{Reserve: 1 + int64(x.members), Expiry: time.Hour},
		})
	}
	subscriber, stop := client.Dedicate()
	t.Cleanup(stop)
	r.subscriber = subscriber
	subscriber.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { r.heard <- m }})
	return r
}

func modelTime(ticks int8) time.Duration { return time.Duration(ticks) * modelTickTime }

func (r *modelReal) owner(o modelOwner) string {
	return fmt.Sprintf("%s:0%d", r.uuids[r.rules.client[o]], o)
}

func (r *modelReal) owners(os []modelOwner) (names []string) {
	for _, o := range os {
		if o != 0 {
			names = append(names, r.owner(o))
		}
	}
	return names
}

// number is the owner of a name; 0 of none.
func (r *modelReal) number(name string) (o modelOwner) {
	if name == "" {
		return 0
	}
	uuid, number, _ := strings.Cut(name, ":0")
	_, err := fmt.Sscan(number, &o)
	require.NoError(r.t, err)
	require.Equal(r.t, r.uuids[r.rules.client[o]], uuid)
	return o
}

// begin goes on with another key, to whose inboxes nobody listens.
func (r *modelReal) begin(key string) {
	r.key, r.fence, r.listens = key, 0, [modelClients]bool{}
}

// listen begins or ends a client's subscription, and returns when Redis has done so.
func (r *modelReal) listen(c int8) {
	r.listens[c] = !r.listens[c]
	inbox := wire.Inbox(r.key, r.uuids[c])
	cmd := r.subscriber.B().Unsubscribe().Channel(inbox).Build()
	if r.listens[c] {
		cmd = r.subscriber.B().Subscribe().Channel(inbox).Build()
	}
	require.NoError(r.t, r.subscriber.Do(locktest.Bounded(r.t), cmd).Error())
}

// end ends what the walk's last key began.
func (r *modelReal) end() {
	for c := range r.listens {
		if r.listens[c] {
			r.listen(int8(c))
		}
	}
}

// message waits for the message that the model has foretold, if any. That there are
// no others is seen by the next one, and by the inboxes' silence at the end.
func (r *modelReal) message(m modelMessage) modelMessage {
	if m.to == modelNobody {
		return m
	}
	reply := locktest.Within(r.t, r.heard)
	g, ok := wire.ParseGrant(r.key, reply.Message)
	require.True(r.t, ok, reply.Message)
	for c := range r.fairs {
		if reply.Channel == wire.Inbox(r.key, r.uuids[c]) {
			return modelMessage{int8(c), r.grant(g)}
		}
	}
	require.Fail(r.t, "no message in an inbox of the key")
	return m
}

// grant is a grant in the model's terms. Fence numbers are compared by their
// growing only, and by how many they are.
func (r *modelReal) grant(g wire.Grant) modelGrant {
	m := modelGrant{owner: r.number(g.Owner), lease: int8(g.Lease / modelTickTime)}
	m.fence, m.fenceEnd = r.minted(g.Fence, g.FenceEnd)
	for i, name := range g.Members {
		m.members[i] = r.number(name)
	}
	return m
}

func (r *modelReal) minted(first, last int64) (from, to int8) {
	if first == 0 {
		return 0, 0
	}
	require.Greater(r.t, first, r.fence)
	r.fence = last
	return 1, int8(last - first + 1)
}

// modelCountFences is what minted makes of fence numbers, of the model's.
func modelCountFences(first, last *int8) {
	if *first != 0 {
		*first, *last = 1, *last-*first+1
	}
}
