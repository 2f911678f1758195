package redistest

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// conn is one connection through the proxy: two lines, one for each direction.
type conn struct {
	proxy   *Proxy        // immutable
	client  net.Conn      // immutable
	closed  chan struct{} // closed by close
	once    sync.Once     // of close
	pending pending       // has its own lock

	mu     sync.Mutex
	server net.Conn // guarded by mu; nil until dialled
	began  [][]byte // the requests that began it, for Swap; guarded by mu
}

// run owns the connection: it returns when both directions have ended or the
// connection was closed, and nothing of it is left then.
func (c *conn) run() {
	defer func() {
		c.close()
		c.proxy.mu.Lock()
		delete(c.proxy.conns, c)
		c.proxy.mu.Unlock()
	}()
	server, ok := c.dial()
	if !ok {
		return
	}
	up := &line{conn: c, dir: requests, src: c.client, wake: make(chan struct{}, 1)}
	down := &line{conn: c, dir: replies, src: server, wake: make(chan struct{}, 1)}
	var lines sync.WaitGroup
	for _, l := range []*line{up, down} {
		lines.Go(l.receive)
		lines.Go(l.deliver)
	}
	lines.Wait()
}

// dial connects to the target; false if that failed or the connection was closed
// meanwhile.
func (c *conn) dial() (net.Conn, bool) {
	server, err := c.proxy.net.Dial(c.proxy.Target())
	if err != nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		server.Close()
		return nil, false
	default:
		c.server = server
		return c.server, true
	}
}

// another is a connection to the proxy's present target that has begun as this one has; nil if
// there is none.
func (c *conn) another() net.Conn {
	c.mu.Lock()
	began := slices.Clone(c.began)
	c.mu.Unlock()
	next, err := c.proxy.net.Dial(c.proxy.Target())
	if err != nil {
		return nil
	}
	answers := bufio.NewReader(next)
	for _, request := range began {
		if _, err = next.Write(request); err == nil {
			_, err = readFrame(answers)
		}
		if err != nil {
			next.Close()
			return nil
		}
	}
	return next
}

// swap makes next the server, unless a request is under way. What has to end then is for the
// caller to call.
func (c *conn) swap(next net.Conn) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.server
	if next != nil && old != nil && c.pending.idle() { // a request that comes from now on waits for the lock
		c.server = next
		return func() { old.Close() }
	}
	return func() {
		if next != nil {
			next.Close()
		}
		c.close()
	}
}

// present is the server.
func (c *conn) present() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// begins notes a request that begins a connection.
func (c *conn) begins(cmd []string, raw []byte) {
	switch strings.ToUpper(cmd[0]) {
	case "HELLO", "AUTH", "SELECT", "CLIENT":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.began = append(c.began, raw)
	}
}

// close resets the client, ends the server's side in order, so that it carries
// out what was forwarded, and ends all waits. Safe to repeat.
func (c *conn) close() {
	c.once.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.closed)
		reset(c.client)
		if c.server != nil {
			c.server.Close()
		}
	})
}

// line is one direction of a connection: receive reads, judges and puts down
// what arrives, deliver takes it up when its time has come. A frame waits in the
// line without keeping later ones from being read.
type line struct {
	conn *conn         // immutable
	dir  direction     // immutable
	src  net.Conn      // owned by receive
	wake chan struct{} // one slot: items were put down

	mu    sync.Mutex
	items []item // guarded by mu
}

// item is something to be delivered in its turn.
type item struct {
	do    action
	raw   []byte    // of a write
	due   time.Time // not before
	until int       // not before that many calls of Release
}

type action int

const (
	write    action = iota // bytes
	shut                   // the end of the stream
	stop                   // nothing, now and later
	closeAll               // close the connection
)

// receive reads until the source ends.
func (l *line) receive() {
	r := bufio.NewReader(l.src)
	for {
		f, err := readFrame(r)
		if now := l.conn.present(); err != nil && l.dir == replies && now != l.src { // swapped
			l.src = now
			r.Reset(now)
			continue
		}
		if err != nil {
			l.put(item{do: shut})
			return
		}
		it := item{raw: f.raw}
		if cmd, own, ok := l.subject(f); ok {
			v, until := l.conn.proxy.judge(l.dir, cmd)
			switch v {
			case Drop:
				l.put(item{do: stop})
				_, _ = io.Copy(io.Discard, r)
				return
			case Cut:
				l.put(item{do: closeAll})
				_, _ = io.Copy(io.Discard, r) // or the writer would wait, over a pipe, while what came before is held
				return
			case Hold:
				it.until = until
			}
			if text, answers := l.conn.proxy.own(l.dir, cmd); answers {
				own = text
			}
			if l.dir == requests {
				l.conn.begins(cmd, f.raw)
				l.conn.pending.add(cmd, own)
			}
			if own != "" {
				it.raw = l.dir.inOwnWords(own)
			}
		}
		l.put(it)
	}
}

// dst is where the line leads.
func (l *line) dst() net.Conn {
	if l.dir == requests {
		return l.conn.present()
	}
	return l.conn.client
}

// inOwnWords is what travels on in place of a request that the proxy answers itself, and of
// the reply.
func (d direction) inOwnWords(text string) []byte {
	if d == requests {
		return []byte("*1\r\n$4\r\nPING\r\n")
	}
	return []byte("-" + text + "\r\n")
}

// subject is the command which the frame is, or to which it is the reply, and then by
// which text the proxy answers it, if it does; false for a push and for an empty request.
func (l *line) subject(f frame) (cmd []string, own string, ok bool) {
	if l.dir == requests {
		cmd := f.words(-1)
		return cmd, "", len(cmd) > 0
	}
	return l.conn.pending.answered(f)
}

func (l *line) put(it item) {
	l.conn.proxy.mu.Lock()
	side := &l.conn.proxy.sides[l.dir]
	it.due = time.Now().Add(side.delay)
	if side.jitter != nil {
		it.due = it.due.Add(side.jitter())
	}
	l.conn.proxy.mu.Unlock()
	l.mu.Lock()
	l.items = append(l.items, it)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// deliver hands on what was put down, in its order, until the end of the stream
// or of the connection.
func (l *line) deliver() {
	for {
		l.mu.Lock()
		items := l.items
		l.items = nil
		l.mu.Unlock()
		for _, it := range items {
			if !l.await(it) {
				return
			}
			switch it.do {
			case write:
				if _, err := l.dst().Write(it.raw); err != nil {
					return // the other direction learns it by itself
				}
			case shut:
				closeWrite(l.dst())
				return
			case stop:
				return
			case closeAll:
				l.conn.close()
				return
			}
		}
		select {
		case <-l.wake:
		case <-l.conn.closed:
			return
		}
	}
}

// await returns when the item may be delivered; false when the connection was
// closed first.
func (l *line) await(it item) bool {
	if d := time.Until(it.due); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.conn.closed:
			return false
		}
	}
	p := l.conn.proxy
	for {
		p.mu.Lock()
		held := p.sides[l.dir].held || p.releases < it.until
		changed := p.changed
		p.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-changed:
		case <-l.conn.closed:
			return false
		}
	}
}
