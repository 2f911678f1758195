package wire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// connections hands out the dedicated connections of a client. [rueidis.Client.Dedicate] waits
// without a context, for as long as others use all BlockingPoolSize of them, or a dial takes.
// Here a caller waits as long as it likes, and a connection that comes late goes to the next
// caller, or back. So there are never more calls of Dedicate under way than there were callers
// at one time. The zero value is ready.
type connections struct {
	log *slog.Logger // nil: none; immutable

	mu       sync.Mutex
	lent     int               // connections; guarded by mu
	most     int               // of lent so far; guarded by mu
	redialed time.Time         // when idle was asked last; guarded by mu
	waiting  []chan connection // callers, in their order; guarded by mu
	asked    int               // calls of Dedicate under way; guarded by mu
	logged   bool              // logged that none came in time; guarded by mu
}

// connection is a dedicated connection; giveBack must be called, even after Close.
type connection struct {
	rueidis.DedicatedClient
	giveBack func()
}

// exchange sends commands, and reports whether the connection may be given back as it is. Otherwise it
// must be closed first: it has a queue, since somebody used it with a context without a deadline, or by
// AlwaysPipelining or OnInvalidations. When such a connection is given back, rueidis sends commands of its
// own, and panics if a server refuses them (MISCONF, BUSY). Only where there is no queue does it ask ctx for its
// deadline, which must show. It makes a queue, unseen, if it has a PING to send at that moment: so a connection
// whose server refuses in that way is closed, too.
func (c connection) exchange(ctx context.Context, cmds ...rueidis.Completed) (replies []rueidis.RedisResult, clean bool) {
	asked := &askedContext{Context: ctx}
	replies = c.DoMulti(asked, cmds...)
	return replies, asked.deadline && !slices.ContainsFunc(replies, func(r rueidis.RedisResult) bool { return refusesPing(r.Error()) })
}

// end gives the connection back, or closes it in the background, as a silent server makes that take a second.
func (c connection) end(clean bool) {
	if clean {
		c.giveBack()
		return
	}
	go func() {
		c.Close()
		c.giveBack()
	}()
}

// refusesPing reports whether a server that ends a call like that may refuse even PING, or is gone.
func refusesPing(err error) bool {
	re, is := err.(*rueidis.RedisError)
	if !is {
		return err != nil
	}
	text := unwrapped(re.Error())
	return strings.HasPrefix(text, "MISCONF ") || strings.HasPrefix(text, "BUSY ")
}

// askedContext notes whether it was asked for its deadline.
type askedContext struct {
	context.Context
	deadline bool
}

func (c *askedContext) Deadline() (time.Time, bool) {
	c.deadline = true
	return c.Context.Deadline()
}

// errNoConnection is why a call was not sent: nothing was done.
var errNoConnection = Judge(errors.New("no dedicated connection of the client came in time: the server does not answer, "+
	"or the program uses all of ClientOption.BlockingPoolSize"), Unavailable)

// borrow returns a connection, or errNoConnection when ctx ends.
func (c *connections) borrow(ctx context.Context, client rueidis.Client) (connection, error) {
	came := make(chan connection, 1)
	c.mu.Lock()
	c.waiting = append(c.waiting, came)
	if c.asked < len(c.waiting) {
		c.asked++
		go c.ask(client)
	}
	c.mu.Unlock()
	select {
	case conn := <-came:
		return c.lend(conn), nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	i := slices.Index(c.waiting, came)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	news := !c.logged && i >= 0 && ctx.Err() == context.DeadlineExceeded
	c.logged = c.logged || news
	c.mu.Unlock()
	if i < 0 {
		return c.lend(<-came), nil
	}
	if news && c.log != nil {
		c.log.Warn("holdfast: " + errNoConnection.Error())
	}
	return connection{}, errNoConnection
}

// lend counts a connection until it is given back.
func (c *connections) lend(conn connection) connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent++
	c.most = max(c.most, c.lent)
	back := conn.giveBack
	conn.giveBack = func() {
		c.mu.Lock()
		c.lent--
		c.mu.Unlock()
		back()
	}
	return conn
}

// idle is how many connections to a server that has become a replica the client may still
// have; 0 if that was asked less than redialPause ago: new ones reach the replica again then.
func (c *connections) idle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.redialed) < redialPause {
		return 0
	}
	c.redialed = time.Now()
	return c.most
}

// ask waits for one connection. It ends at the latest when the client is closed.
func (c *connections) ask(client rueidis.Client) {
	var conn connection
	conn.DedicatedClient, conn.giveBack = client.Dedicate()
	c.mu.Lock()
	c.asked--
	c.logged = false
	late := len(c.waiting) == 0
	if !late {
		c.waiting[0] <- conn
		c.waiting = slices.Delete(c.waiting, 0, 1)
	}
	c.mu.Unlock()
	if late {
		conn.unused()
	}
}

// unused gives back a connection that nobody uses, once a PING has shown whether it may be.
func (c connection) unused() {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_, clean := c.exchange(ctx, c.B().Ping().Build())
	c.end(clean)
}

// overdue reports whether a connection is waited for whose caller has given up.
func (c *connections) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked > len(c.waiting)
}

// pool returns the connections to a server, and its client: the one server, or the node of a
// Redis Cluster at that address. The client of a whole Cluster takes a connection only
// when it sends; it is used only while the node is not known.
func (r *Redis) pool(addr string) (*connections, rueidis.Client) {
	client := r.client
	if addr != "" {
		if node := r.client.Nodes()[addr]; node != nil {
			client = node
		}
	}
	pool, known := r.pools.Load(addr)
	if !known {
		pool, _ = r.pools.LoadOrStore(addr, &connections{log: r.Logger})
	}
	return pool.(*connections), client
}

// sendAndWait sends a command for a key, and WAIT, on a connection of their own, and returns the
// replies. asking is the node of a Redis Cluster that ASK has named, otherwise "".
//
// Renewals can do without such a connection. If none comes soon, they share that of the
// client's other calls, one renewal at a time. That holds up the others for as long as WAIT
// takes, which is better than losing a lease.
func (r *Redis) sendAndWait(ctx context.Context, renewal bool, key, asking string, cmd rueidis.Completed) ([]rueidis.RedisResult, error) {
	addr := asking
	if addr == "" && r.Cluster != nil {
		addr = r.Cluster.Node(key)
	}
	pool, client := r.pool(addr)
	cmds := make(rueidis.Commands, 0, 3)
	if asking != "" && client != r.client {
		cmds = append(cmds, r.client.B().Arbitrary("ASKING").Build().Pin())
	}
	cmds = append(cmds, cmd.Pin()) // it may be sent again
	if !renewal {
		return r.onDedicated(ctx, r.Patience, pool, client, cmds)
	}
	if !pool.overdue() {
		if replies, err := r.onDedicated(ctx, r.Patience/4, pool, client, cmds); err == nil {
			return replies, nil
		}
	}
	select {
	case r.renewSlot <- struct{}{}:
		defer func() { <-r.renewSlot }()
	case <-ctx.Done():
		return nil, errNoConnection
	}
	wait := r.client.B().Arbitrary("WAIT", decimal(int64(r.Replicas)), millis(r.ReplicaTimeout)).Build() // Wait() would want a connection of its own
	replies := client.DoMulti(ctx, append(cmds, wait)...)
	if refusedByReplica(replies) {
		r.redial(ctx)
	}
	return replies, nil
}

// onDedicated sends on a dedicated connection, for which it waits at most patience. One that a
// replica refuses was dialled before the server lost its place, and nothing was done. It is
// closed, and the next one is tried, as many as may be idle there.
func (r *Redis) onDedicated(ctx context.Context, patience time.Duration, pool *connections, client rueidis.Client, cmds rueidis.Commands) ([]rueidis.RedisResult, error) {
	bounded, done := context.WithTimeout(ctx, patience)
	defer done()
	shown, stop := context.WithTimeout(ctx, 2*r.Patience+r.ReplicaTimeout)
	defer stop()
	cmds = append(cmds, r.client.B().Wait().Numreplicas(int64(r.Replicas)).Timeout(r.ReplicaTimeout.Milliseconds()).Build().Pin())
	try := func() (replies []rueidis.RedisResult, refused bool, err error) {
		conn, err := pool.borrow(bounded, client)
		if err != nil {
			return nil, false, err
		}
		if shown.Err() != nil {
			go conn.unused()
			return nil, false, errNoConnection
		}
		replies, clean := conn.exchange(shown, cmds...)
		refused = refusedByReplica(replies)
		conn.end(clean && !refused)
		return replies, refused, nil
	}
	replies, refused, err := try()
	if !refused {
		return replies, err
	}
	for more := pool.idle(); refused && more > 0; more-- {
		next, again, err := try()
		if err != nil { // the time is over
			break
		}
		replies, refused = next, again
	}
	return replies, nil
}

// refusedByReplica reports whether a replica refused a command that WAIT follows.
func refusedByReplica(replies []rueidis.RedisResult) bool {
	return byReplica(replies[len(replies)-2].ToMessage())
}
