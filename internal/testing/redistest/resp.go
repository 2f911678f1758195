package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// frame is one whole RESP2 or RESP3 value as it stood on the wire.
type frame struct {
	raw   []byte
	bulks [][2]int // where in raw its bulk strings lie, at any depth
}

// words are the first n bulk strings of the frame, or all if there are fewer or
// n is negative. An inline request is split at spaces.
func (f frame) words(n int) []string {
	if len(f.bulks) == 0 && f.raw[0] != '*' {
		return strings.Fields(string(f.raw))
	}
	if n < 0 || n > len(f.bulks) {
		n = len(f.bulks)
	}
	words := make([]string, n)
	for i := range words {
		words[i] = string(f.raw[f.bulks[i][0]:f.bulks[i][1]])
	}
	return words
}

// maxLength is Redis' own limit on the length of a string (proto-max-bulk-len).
const maxLength = 512 << 20

// readFrame reads the next value. Streamed values ("$?"), which no Redis sends,
// are an error.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	for todo := 1; todo > 0; todo-- { // values still to be read
		line, err := r.ReadBytes('\n')
		if err != nil {
			return frame{}, err
		}
		f.raw = append(f.raw, line...)
		if !strings.ContainsRune("$=!*~>%|", rune(line[0])) {
			continue // a simple value: the line is all of it
		}
		n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
		if err != nil || n > maxLength {
			return frame{}, fmt.Errorf("not RESP: %q", line)
		}
		if n < 0 {
			continue // nil
		}
		switch line[0] {
		case '$', '=', '!':
			from := len(f.raw)
			f.raw = append(f.raw, make([]byte, n+2)...)
			if _, err := io.ReadFull(r, f.raw[from:]); err != nil {
				return frame{}, err
			}
			f.bulks = append(f.bulks, [2]int{from, from + n})
		case '%':
			todo += 2 * n
		case '|': // an attribute belongs to the value that follows it
			todo += 2*n + 1
		default:
			todo += n
		}
	}
	return f, nil
}

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

// idle reports whether no request waits for its answer.
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
