package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// The clients of these tests; the last two are Java programs.
const (
	clientA = "aaaaaaaa-5b0c-4f57-9f2a-0d9f5f3f6a01"
	clientB = "bbbbbbbb-5b0c-4f57-9f2a-0d9f5f3f6a01"
	clientC = "cccccccc-5b0c-4f57-9f2a-0d9f5f3f6a01"
	clientJ = "dddddddd-5b0c-4f57-9f2a-0d9f5f3f6a01"
	clientK = "eeeeeeee-5b0c-4f57-9f2a-0d9f5f3f6a01"
)

func ofA(n int) string { return goOwner(clientA, n) }
func ofB(n int) string { return goOwner(clientB, n) }
func ofC(n int) string { return goOwner(clientC, n) }
func ofJ(n int) string { return clientJ + ":" + strconv.Itoa(n) }
func ofK(n int) string { return clientK + ":" + strconv.Itoa(n) }

func goOwner(client string, n int) string { return client + ":0" + strconv.Itoa(n) }

const grantLease = 90 * time.Second

func settingsOf(client string) FairSettings {
	return FairSettings{LockerID: client, WaiterTTL: 60 * time.Second, GrantLease: grantLease}
}

// harness is a server with the Go clients A, B and C, which listen to their inboxes.
type harness struct {
	*subscriber
	t     testing.TB
	s     *redistest.Server
	redis *Redis
	fairs map[string]*Fair
	vote  *Vote // of the node; nil: it has none
}

func newHarness(t testing.TB, change ...func(*FairSettings)) *harness {
	t.Helper()
	s, n := start(t)
	r := &harness{subscriber: listen(t, s), t: t, s: s, redis: n, fairs: map[string]*Fair{}}
	for _, client := range []string{clientA, clientB, clientC} {
		settings := settingsOf(client)
		for _, f := range change {
			f(&settings)
		}
		r.fairs[client] = NewFair(n, settings)
		r.subscribe(r.inbox(client))
	}
	return r
}

// of returns the Fair of an owner's client.
func (r *harness) of(owner string) *Fair { return r.fairs[owner[:36]] }

// inbox is that of an owner's client, for k.
func (r *harness) inbox(owner string) string { return Inbox("k", owner[:36]) }

func (r *harness) acquire(owner string) AcquireReply {
	r.t.Helper()
	return must(r.of(owner).Acquire(bounded(r.t), asking("k", owner)))(r.t)
}

func (r *harness) enter(owners ...string) EnterReply {
	r.t.Helper()
	return must(r.of(owners[0]).Enter(bounded(r.t), "k", owners...))(r.t)
}

// waits has owners enter one after the other, and all of them wait.
func (r *harness) waits(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		e := r.enter(o)
		require.Equal(r.t, []OwnerState{Waiting}, e.States)
		require.Zero(r.t, e.Grant)
	}
}

// follow has the first owner acquire, and the others wait.
func (r *harness) follow(holder string, owners ...string) {
	r.t.Helper()
	require.True(r.t, r.acquire(holder).OK)
	r.waits(owners...)
}

func (r *harness) release(owner string, served ...string) FairReply {
	r.t.Helper()
	h := fairHold("k", owner, 0)
	h.Served = served
	return must(r.of(owner).Release(bounded(r.t), h))(r.t)
}

// fairHold is a hold to be released.
func fairHold(key, owner string, lastFence int64) FairReleaseRequest {
	return FairReleaseRequest{ReleaseRequest: ReleaseRequest{Key: key, Owner: owner, LastFence: lastFence}}
}

func (r *harness) leave(owners ...string) FairReply {
	r.t.Helper()
	return must(r.of(owners[0]).Leave(bounded(r.t), LeaveRequest{"k", nil, owners}))(r.t)
}

// heartbeat is a heartbeat of a client for k that names owners, whose scores are kept 30 s
// ahead.
func (r *harness) heartbeat(client string, owners ...string) HeartbeatReply {
	r.t.Helper()
	return r.beat(client, HeartbeatRequest{Owners: owners, Ahead: slices.Repeat([]time.Duration{30 * time.Second}, len(owners))})
}

// beat is a heartbeat of a client for k alone.
func (r *harness) beat(client string, asked HeartbeatRequest) HeartbeatReply {
	r.t.Helper()
	asked.Key = "k"
	replies := make([]HeartbeatReply, 1)
	require.NoError(r.t, r.fairs[client].Heartbeat(bounded(r.t), []HeartbeatRequest{asked}, replies))
	return replies[0]
}

// silence makes a client one that has been silent for too long.
func (r *harness) silence(clients ...string) {
	r.t.Helper()
	for _, c := range clients {
		r.s.Do(r.t, "HSET", heartbeats("k"), c, decimal(serverMillis(r.t, r.s)))
	}
}

// expire ends the hold as its expiry would.
func (r *harness) expire() { r.t.Helper(); r.s.Do(r.t, "DEL", "k") }

// hold gives the lock to an owner of none of the clients.
func (r *harness) hold() { r.t.Helper(); r.s.Do(r.t, "HSET", "k", ownA, "1") }

// requireHeld requires that owner, and nobody else, holds the lock for about d.
func (r *harness) requireHeld(owner string, d time.Duration) {
	r.t.Helper()
	m := r.s.Do(r.t, "HGETALL", "k")
	require.Equal(r.t, map[string]string{owner: "1"}, must(m.AsStrMap())(r.t))
	require.InDelta(r.t, d.Milliseconds(), number(r.t, r.s, "PTTL", "k"), slackMillis)
}

func (r *harness) requireFree() {
	r.t.Helper()
	require.Zero(r.t, number(r.t, r.s, "EXISTS", "k"))
}

// requireServed requires that owner holds the lock by a grant, and that these wait.
func (r *harness) requireServed(owner string, waiting ...string) {
	r.t.Helper()
	r.requireHeld(owner, grantLease)
	r.requireQueue(waiting...)
}

// requireQueue requires that these owners and no others wait, in this order, each
// with a score.
func (r *harness) requireQueue(owners ...string) {
	r.t.Helper()
	require.Equal(r.t, append([]string{}, owners...), r.waiting())
	require.ElementsMatch(r.t, owners, listed(r.t, r.s, "ZRANGE", scores("k"), "0", "-1"))
}

func (r *harness) waiting() []string {
	r.t.Helper()
	return listed(r.t, r.s, "LRANGE", queue("k"), "0", "-1")
}

// ahead is by how much an owner's score lies ahead of the server's clock.
func (r *harness) ahead(owner string) time.Duration {
	r.t.Helper()
	return time.Duration(r.score(owner)-serverMillis(r.t, r.s)) * time.Millisecond
}

func (r *harness) score(owner string) int64 {
	r.t.Helper()
	m := r.s.Do(r.t, "ZSCORE", scores("k"), owner)
	return int64(must(m.AsFloat64())(r.t))
}

func serverMillis(t testing.TB, s *redistest.Server) int64 { return serverMicros(t, s) / 1000 }

// granted is a grant without fences and run.
func granted(owner string) Grant { return Grant{Owner: owner, Lease: grantLease} }

// grantMessage is the message that tells a client of that grant.
func grantMessage(owner string, members ...string) string {
	numbers := strings.Join(append([]string{"0", "0"}, members...), " ")
	return "redisson_lock__channel:{k}:" + owner[:36] + " " + fmt.Sprintf("%s %d %s for k", owner, grantLease.Milliseconds(), numbers)
}

// subscriber is one connection that listens to channels.
type subscriber struct {
	t        testing.TB
	s        *redistest.Server
	conn     rueidis.DedicatedClient
	received chan rueidis.PubSubMessage
}

func listen(t testing.TB, s *redistest.Server) *subscriber {
	t.Helper()
	conn, stop := s.Client(t).Dedicate()
	t.Cleanup(stop)
	e := &subscriber{t, s, conn, make(chan rueidis.PubSubMessage, 1<<12)}
	conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { e.received <- m }})
	e.subscribe("said")
	return e
}

func (e *subscriber) subscribe(channels ...string) {
	e.t.Helper()
	e.do(e.conn.B().Subscribe().Channel(channels...).Build())
}

func (e *subscriber) unsubscribe(channels ...string) {
	e.t.Helper()
	e.do(e.conn.B().Unsubscribe().Channel(channels...).Build())
}

func (e *subscriber) do(cmd rueidis.Completed) {
	e.t.Helper()
	require.NoError(e.t, e.conn.Do(bounded(e.t), cmd).Error())
}

// messages returns what was said since it was last asked, each as channel and
// message. Redis keeps messages to one connection in their order.
func (e *subscriber) messages() []string {
	e.t.Helper()
	require.EqualValues(e.t, 1, number(e.t, e.s, "PUBLISH", "said", ""))
	var all []string
	for m := range e.received {
		if m.Channel == "said" {
			break
		}
		all = append(all, m.Channel+" "+m.Message)
	}
	return all
}

// requireSaid requires that this and nothing else was said.
func (e *subscriber) requireSaid(want ...string) {
	e.t.Helper()
	require.Equal(e.t, strings.Join(want, "\n"), strings.Join(e.messages(), "\n"))
}
