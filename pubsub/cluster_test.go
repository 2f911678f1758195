package pubsub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// ways are the kinds of channels that the servers have.
func ways() map[string]bool {
	if redistest.Before7() {
		return map[string]bool{"classic": false}
	}
	return map[string]bool{"classic": false, "sharded": true}
}

// openCluster returns a Subscriber that is closed with the test, before its client.
func openCluster(t *testing.T, client rueidis.Client, sharded bool, change ...func(*Subscriber)) *Subscriber {
	t.Helper()
	s := NewCluster(client, cluster.New(client), func(context.Context) (bool, error) { return sharded, nil }, nil)
	for _, f := range change {
		f(s)
	}
	t.Cleanup(s.Close)
	return s
}

// spread returns so many names for each master, by its address.
func spread(t *testing.T, c *redistest.Cluster, each int) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	masters := len(c.Masters(t))
	for i, full := 0, 0; full < masters; i++ {
		name := fmt.Sprint("channel:", i)
		owner := c.Owner(t, name).Addr()
		if len(names[owner]) < each {
			if names[owner] = append(names[owner], name); len(names[owner]) == each {
				full++
			}
		}
	}
	return names
}

// release publishes as the locks' scripts do, and returns how many listen at the master that did.
func release(ctx context.Context, client rueidis.Client, sharded bool, name string) (int64, error) {
	script := "return redis.call('PUBLISH', KEYS[1], '0')"
	if sharded {
		script = "return redis.call('SPUBLISH', KEYS[1], '0')"
	}
	return client.Do(ctx, client.B().Eval().Script(script).Numkeys(1).Key(name).Build()).AsInt64()
}

// awaitHeard waits until so many listen at the master that publishes.
func awaitHeard(t *testing.T, client rueidis.Client, sharded bool, name string, want int64) {
	t.Helper()
	locktest.Await(t, func() bool {
		n, err := release(t.Context(), client, sharded, name)
		return err == nil && n == want
	})
}

func pubsubClients(t *testing.T, servers []*redistest.Server) (n []int) {
	t.Helper()
	for _, srv := range servers {
		n = append(n, clients(t, srv, "pubsub"))
	}
	return n
}

// Each channel is at the master of its slot, and each master has one connection.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	names := slices.Concat(slices.Collect(maps.Values(spread(t, c, 20)))...)
	for way, sharded := range ways() {
		for protocol, change := range protocols {
			t.Run(way+" "+protocol, func(t *testing.T) {
				client := c.Client(t, named, change)
				s := openCluster(t, client, sharded, patient)
				subs := map[string]*Subscription{}
				for _, name := range names {
					subs[name] = s.Subscribe(name)
				}
				for name, first := range subs {
					require.Equal(t, State{Epoch: 1, Live: true}, await(t, first, "live", live))
					late := s.Subscribe(name)
					require.Equal(t, State{Epoch: 1, Live: true}, late.State())
					heard := make(chan string, 1)
					hearer := s.SubscribeFunc(name, func(message string) { heard <- message })

					n := locktest.Must(release(t.Context(), client, sharded, name))(t)
					require.EqualValues(t, 1, n, "the master that publishes counts the listener")
					await(t, first, "told", func(st State) bool { return st.Messages == 1 })
					await(t, late, "told", func(st State) bool { return st.Messages == 1 })
					require.Equal(t, "0", <-heard)
					late.Close()
					hearer.Close()
				}
				require.Equal(t, []int{1, 1, 1}, pubsubClients(t, c.Masters(t)))
				require.Equal(t, []int{0, 0, 0}, pubsubClients(t, c.Replicas(t)))
				for name, sub := range subs {
					sub.Close()
					awaitHeard(t, client, sharded, name, 0)
				}
				locktest.Await(t, func() bool { return known(s) == 0 })
				s.Close()
				locktest.Await(t, func() bool {
					return fmt.Sprint(pubsubClients(t, c.Masters(t))) == "[0 0 0]"
				})
			})
		}
	}
}

// listener watches one channel, in one of the ways.
type listener struct {
	name    string
	sharded bool
	sub     *Subscription
	lost    atomic.Int64 // releases that it was told of by the end of an epoch
	seen    atomic.Int64 // by a message
}

// round publishes once while the listener is live. It must be told of that, by the message or by the loss of the
// epoch.
func (l *listener) round(client rueidis.Client) error {
	st, ok := reach(l.sub, live)
	if !ok {
		return fmt.Errorf("%s, sharded %t: not live", l.name, l.sharded)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := release(ctx, client, l.sharded, l.name); err != nil {
		return nil //nolint:nilerr // not published, or not known
	}
	now, ok := reach(l.sub, func(now State) bool { return now.Messages > st.Messages || !now.Live || now.Epoch != st.Epoch })
	switch {
	case !ok:
		return fmt.Errorf("%s, sharded %t: not told; was %+v, is %+v", l.name, l.sharded, st, l.sub.State())
	case now.Messages > st.Messages:
		l.seen.Add(1)
	default:
		l.lost.Add(1)
	}
	return nil
}

// during runs an event while all listeners are told of releases, and a last one afterwards, by a message.
func during(t *testing.T, client rueidis.Client, listeners []*listener, event func()) {
	t.Helper()
	var all sync.WaitGroup
	over := make(chan struct{})
	for _, l := range listeners {
		all.Go(func() {
			for {
				if !assert.NoError(t, l.round(client)) {
					return
				}
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	event()
	close(over)
	all.Wait()
	var seen, lost int64
	for _, l := range listeners {
		before := l.seen.Load()
		locktest.Await(t, func() bool {
			return assert.NoError(t, l.round(client)) && l.seen.Load() > before
		})
		seen += l.seen.Load()
		lost += l.lost.Load()
	}
	t.Logf("%d releases heard, %d told of by a loss", seen, lost)
}

// listen opens a listener in each way for each name.
func listen(t *testing.T, client rueidis.Client, names map[string][]string) (all []*listener) {
	t.Helper()
	for _, sharded := range ways() {
		// A node that is cut off is found by the looks that come when all is settled.
		s := openCluster(t, client, sharded, withPace(func(p *pace) { p.settled = p.most }))
		for _, names := range names {
			for _, name := range names {
				all = append(all, &listener{name: name, sharded: sharded, sub: s.Subscribe(name)})
			}
		}
	}
	for _, l := range all {
		awaitLive(t, l.sub)
	}
	return all
}

func TestF13_SlotsMigrate(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	client := c.Client(t, named)
	names := spread(t, c, 2)
	listeners := listen(t, client, names)
	masters := c.Masters(t)
	during(t, client, listeners, func() {
		for round := range 5 {
			for _, names := range names {
				slot := c.Slot(t, names[0])
				to := masters[(round+slot)%3]
				if to == c.Owner(t, names[0]) {
					continue
				}
				c.BeginMigration(t, slot, to)
				time.Sleep(20 * time.Millisecond) // releases at the new master, listeners at the old one
				c.EndMigration(t, slot, to)
			}
		}
	})
	// The listeners have moved along, and are counted where the release is.
	for _, l := range listeners {
		awaitHeard(t, client, l.sharded, l.name, 1)
	}
}

func TestF26_FailOver(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	client := c.Client(t, named)
	listeners := listen(t, client, spread(t, c, 2))
	old := c.Masters(t)[0]
	during(t, client, listeners, func() { c.Failover(t, old) })
	for _, l := range listeners { // a node that is no master any more ends, with its connection
		s := l.sub.s
		locktest.Await(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.nodes[old.Addr()] == nil
		})
	}

	dead := c.Masters(t)[1]
	during(t, client, listeners, func() {
		dead.Kill()
		c.AwaitPromoted(t, dead)
		promoted := time.Now()
		for _, l := range listeners {
			locktest.Await(t, func() bool { return l.sub.State().Live })
		}
		t.Log("all live again after", time.Since(promoted))
	})
	for _, l := range listeners {
		awaitHeard(t, client, l.sharded, l.name, 1)
	}

	paused := c.Masters(t)[2]
	during(t, client, listeners, func() {
		paused.Pause()
		c.AwaitPromoted(t, paused)
	})
	paused.Resume()
}
