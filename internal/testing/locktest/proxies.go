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

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Proxies are one proxy before each server of a topology, which are all treated alike. A
// hook sees the calls to any of them.
type Proxies struct {
	t   testing.TB
	All []*redistest.Proxy
}

// Behind puts a proxy before each server.
func (f Topology) Behind(t testing.TB) *Proxies {
	t.Helper()
	w := &Proxies{t: t}
	f.Each(func(s Server) { w.All = append(w.All, s.Proxy(t)) })
	return w
}

func (w *Proxies) Each(do func(*redistest.Proxy)) {
	for _, p := range w.All {
		do(p)
	}
}

// Addr is the addresses of all of them, with commas between.
func (w *Proxies) Addr() string {
	var all []string
	w.Each(func(p *redistest.Proxy) { all = append(all, p.Addr()) })
	return strings.Join(all, ",")
}

// Ways is Addr with the server behind each, for [Parent.Client].
func (w *Proxies) Ways() string {
	var all []string
	w.Each(func(p *redistest.Proxy) { all = append(all, p.Addr()+"="+p.Target()) })
	return strings.Join(all, ",")
}

func (w *Proxies) OnRequest(h redistest.Hook) { w.Each(func(p *redistest.Proxy) { p.OnRequest(h) }) }
func (w *Proxies) OnReply(h redistest.Hook)   { w.Each(func(p *redistest.Proxy) { p.OnReply(h) }) }
func (w *Proxies) HoldRequests(on bool)       { w.Each(func(p *redistest.Proxy) { p.HoldRequests(on) }) }
func (w *Proxies) HoldReplies(on bool)        { w.Each(func(p *redistest.Proxy) { p.HoldReplies(on) }) }
func (w *Proxies) Refuse(on bool)             { w.Each(func(p *redistest.Proxy) { p.Refuse(on) }) }
func (w *Proxies) Release()                   { w.Each((*redistest.Proxy).Release) }
func (w *Proxies) Cut()                       { w.Each((*redistest.Proxy).Cut) }

func (w *Proxies) SetDelay(request, reply time.Duration) {
	w.Each(func(p *redistest.Proxy) { p.SetDelay(request, reply) })
}

func (w *Proxies) OwnWords(text string, instead bool, match func(cmd []string) bool) {
	w.Each(func(p *redistest.Proxy) { p.OwnWords(text, instead, match) })
}

// SwallowReply does so on each proxy. The channel is closed when most have: not every node
// need be asked.
func (w *Proxies) SwallowReply(k int, match func(cmd []string) bool) <-chan struct{} {
	return w.OnMost(func(p *redistest.Proxy) <-chan struct{} { return p.SwallowReply(k, match) })
}

// OnAll begins something on each way, and tells when it has happened on all.
func (w *Proxies) OnAll(begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	return w.onEach(len(w.All), begin)
}

// OnMost tells when it has happened on most of them.
func (w *Proxies) OnMost(begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	return w.onEach(len(w.All)/2+1, begin)
}

// onEach tells when it has happened on so many.
func (w *Proxies) onEach(enough int, begin func(*redistest.Proxy) <-chan struct{}) <-chan struct{} {
	if len(w.All) == 1 {
		return begin(w.All[0])
	}
	happened := make(chan struct{}, len(w.All))
	w.Each(func(p *redistest.Proxy) {
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

// Sockets are the open connections of a client, which a test may drop on its
// side: what was sent on them still travels.
type Sockets struct {
	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

// Dialled is a change of options by which the client's connections are noted.
func (s *Sockets) Dialled(o *rueidis.ClientOption) {
	Dialled(o, func(c net.Conn) net.Conn {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open = append(s.open, c)
		return c
	})
}

// Dialled is a change of options by which the client's connections are those that seen returns
// for them.
func Dialled(o *rueidis.ClientOption, seen func(net.Conn) net.Conn) {
	dial := o.DialCtxFn // nil: that of the system
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, secure *tls.Config) (c net.Conn, err error) {
		if dial != nil {
			c, err = dial(ctx, addr, d, secure)
		} else {
			c, err = d.DialContext(ctx, "tcp", addr)
		}
		if err != nil {
			return nil, err
		}
		return seen(c), nil
	}
}

// Drop closes all connections that there are.
func (s *Sockets) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}
