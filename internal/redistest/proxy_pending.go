package redistest

import (
	"strings"
	"sync"
)

// pending matches replies with requests: Redis answers a connection's requests
// in their order, one reply each. Commands that change subscriptions are the
// exception: they are confirmed by a push for each channel, and have a reply
// only if they are refused.
type pending struct {
	mu       sync.Mutex
	requests []request // guarded by mu; forwarded or held, oldest first
	pubsub   bool      // the connection has subscribed; guarded by mu
	resp3    bool      // the server has spoken RESP3; guarded by mu
}

type request struct {
	cmd  []string
	kind string // of its confirmations; empty for an ordinary command
	left int    // confirmations to come
	own  string // the text by which the proxy answers it; empty: the server does
}

func (p *pending) add(cmd []string, own string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := request{cmd: cmd, own: own}
	if strings.HasSuffix(strings.ToLower(cmd[0]), "subscribe") {
		p.pubsub = true
		r.kind = strings.ToLower(cmd[0])
		r.left = max(len(cmd)-1, 1)
	}
	p.requests = append(p.requests, r)
}

// idle says whether no request waits for its answer.
func (p *pending) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests) == 0
}

// answered returns the request that the frame answers, and its own; false for a push. In
// RESP2 a push is an array like any other, told apart by its first word.
func (p *pending) answered(f frame) (cmd []string, own string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := f.raw[0]
	p.resp3 = p.resp3 || kind == '%' || kind == '>' // HELLO 3 answers with a map
	if kind == '>' || kind == '*' && p.pubsub && !p.resp3 {
		switch w := f.words(1); {
		case len(w) == 0:
		case strings.HasSuffix(w[0], "subscribe"):
			p.confirmed(w[0])
			return nil, "", false
		case strings.HasSuffix(w[0], "message"):
			return nil, "", false
		}
	}
	if kind == '>' || len(p.requests) == 0 {
		return nil, "", false
	}
	r := p.requests[0]
	p.requests = p.requests[1:]
	return r.cmd, r.own, true
}

// confirmed counts a confirmation to the oldest request that waits for one of
// that kind; p.mu is held.
func (p *pending) confirmed(kind string) {
	for i := range p.requests {
		if r := &p.requests[i]; r.kind == kind {
			if r.left--; r.left == 0 {
				p.requests = append(p.requests[:i], p.requests[i+1:]...)
			}
			return
		}
	}
}
