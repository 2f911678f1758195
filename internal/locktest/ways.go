package locktest

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// ways are the ways to the servers of a fleet, one proxy each, to which all is done
// alike. A hook sees what passes any of them.
type ways struct {
	t   testing.TB
	all []*redistest.Proxy
}

// behind puts a proxy before each server.
func (f fleet) behind(t testing.TB) *ways {
	t.Helper()
	w := &ways{t: t}
	f.each(func(s *redistest.Server) { w.all = append(w.all, redistest.NewProxy(t, s.Addr())) })
	return w
}

func (w *ways) each(do func(*redistest.Proxy)) {
	for _, p := range w.all {
		do(p)
	}
}

// Addr is the addresses of all of them, with commas between.
func (w *ways) Addr() string {
	var all []string
	w.each(func(p *redistest.Proxy) { all = append(all, p.Addr()) })
	return strings.Join(all, ",")
}

func (w *ways) OnRequest(h redistest.Hook) { w.each(func(p *redistest.Proxy) { p.OnRequest(h) }) }
func (w *ways) OnReply(h redistest.Hook)   { w.each(func(p *redistest.Proxy) { p.OnReply(h) }) }
func (w *ways) HoldRequests(on bool)       { w.each(func(p *redistest.Proxy) { p.HoldRequests(on) }) }
func (w *ways) HoldReplies(on bool)        { w.each(func(p *redistest.Proxy) { p.HoldReplies(on) }) }
func (w *ways) Refuse(on bool)             { w.each(func(p *redistest.Proxy) { p.Refuse(on) }) }
func (w *ways) Release()                   { w.each((*redistest.Proxy).Release) }
func (w *ways) Cut()                       { w.each((*redistest.Proxy).Cut) }

func (w *ways) SetDelay(request, reply time.Duration) {
	w.each(func(p *redistest.Proxy) { p.SetDelay(request, reply) })
}

// SwallowReply does so on each way. The channel is closed when most have: not every
// node need be asked.
func (w *ways) SwallowReply(k int, match func(cmd []string) bool) <-chan struct{} {
	return w.onMost(func(p *redistest.Proxy) <-chan struct{} { return p.SwallowReply(k, match) })
}

// onAll begins something on each way, and tells when it has happened on all.
func (w *ways) onAll(begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	return w.onEach(len(w.all), begin)
}

// onMost tells when it has happened on most of them.
func (w *ways) onMost(begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	return w.onEach(len(w.all)/2+1, begin)
}

// onEach tells when it has happened on so many.
func (w *ways) onEach(enough int, begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	if len(w.all) == 1 {
		return begin(w.all[0])
	}
	happened := make(chan struct{}, len(w.all))
	w.each(func(p *redistest.Proxy) {
		part := begin(p)
		go func() {
			select {
			case <-part:
				happened <- struct{}{}
			case <-w.t.Context().Done():
			}
		}()
	})
	done := make(chan struct{})
	go func() { // ends with the test
		for range enough {
			select {
			case <-happened:
			case <-w.t.Context().Done():
				return
			}
		}
		close(done)
	}()
	return done
}

// sockets are the open connections of a client, which a test may drop on its
// side: what was sent on them still travels.
type sockets struct {
	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

// dialled is a change of options by which the client's connections are noted.
func (s *sockets) dialled(o *rueidis.ClientOption) {
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open = append(s.open, c)
		}
		return c, err
	}
}

// drop closes all connections that there are.
func (s *sockets) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}
