package pubsub

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
)

// A connection may be deaf: at another server than the one that carries out the client's calls, and with them
// the PUBLISHes of other clients. A name has moved, a proxy has changed its server, a master has become a replica. No
// message says so. On a Cluster, route handles this: its servers know each other.

var errDeaf = errors.New("the server that carries out calls does not know this connection")

// ownChannel stands between the name of a channel and a random word, in the name of a channel that nobody else has. A user
// may hear it like the first, unless channels are allowed one by one.
const ownChannel = ":self:"

// errOwnRefused is why a user whose channels are allowed one by one cannot ask.
var errOwnRefused = errors.New("the user may not listen to a channel of its own, whose name begins like that of a lock")

// verify gives up a deaf connection. While somebody listens, it asks on the connection of the client's calls how many
// listen to a channel that only this connection has. Until the first good answer no channel is live.
func (l *link) verify(n *node) {
	began, pause, first, retry := time.Now(), l.pace.verify, l.asks, loop.Backoff{}
	for {
		select {
		case <-first:
		case <-time.After(pause):
		case <-l.ctx.Done():
			return
		}
		name, err := n.ownToAsk(l)
		if name != "" {
			first, err = nil, n.s.hasListener(name)
		}
		pause = l.pace.verify
		switch {
		case l.ctx.Err() != nil, name == "" && err == nil:
		case err == nil:
			retry.Last = 0
			n.goLive(l)
		case err == errDeaf && n.keepForNow(l, began): // the calls may follow it
		case err == errDeaf, errors.Is(err, rueidis.ErrClosing):
			l.cancel(errDeaf)
		case err == errOwnRefused, hasCode(err, "NOPERM", "unknown command"):
			n.reportUnverified(err)
			n.goLive(l)
			pause = l.pace.deaf
		default:
			if pause = retry.Below(l.pace.verify); retry.Last == l.pace.verify && refusedOddly(err) {
				n.reportUnverified(err)
				n.goLive(l)
			}
		}
	}
}

// withOwn returns the own channel, which is subscribed with the first other one of the connection: the server that has it has
// had them all. It goes last, as somebody waits for the first answer. withOwn returns ch if there is to be none. s.mu is
// held.
func (n *node) withOwn(ch *channel) *channel {
	if n.s.slots != nil {
		return ch
	}
	if n.own == nil {
		n.own = &Subscription{s: n.s, wake: make(chan struct{}, 1)}
		n.listen(ch.name+ownChannel+strconv.FormatUint(rand.Uint64(), 36), n.own)
	}
	if n.own.ch == nil {
		return ch
	}
	return n.own.ch
}

// ownToAsk returns the own channel if it is to be asked for now, or why it cannot be. It drops the channel when there is
// no other. It replaces one that was refused, unless the channel after which it is named is live.
func (n *node) ownToAsk(l *link) (name string, err error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if n.link != l || n.own == nil || n.own.ch == nil {
		return "", nil
	}
	own := n.own.ch
	var live *channel
	for _, ch := range n.channels {
		if ch != own && ch.wanted() && ch.phase == joined {
			live = ch
		}
	}
	switch {
	case len(n.channels) == 1: // no other stays subscribed unasked
		n.dropOwn()
	case live == nil:
	case own.phase == joined:
		name = own.name
	case own.phase == refused:
		like := n.channels[own.name[:strings.LastIndex(own.name, ownChannel)]]
		if like != nil && like.phase == joined {
			n.own.end()
			return "", errOwnRefused
		}
		n.dropOwn()
		n.withOwn(live)
	}
	return name, nil
}

// dropOwn is called with s.mu held.
func (n *node) dropOwn() {
	if n.own != nil {
		n.own.end()
		n.own = nil
	}
}

// refusedOddly reports whether the server, or a proxy before it, has answered unlike one that will soon recover.
func refusedOddly(err error) bool {
	return isReply(err) && !transient(err) && !hasCode(err, "LOADING") || rueidis.IsParseErr(err)
}

// hasListener asks the server of the client's calls whether anybody listens to a channel. It does not wait for long. The call itself
// goes on until the server answers or rueidis gives up its connection: with a short deadline, it would take other calls' connection
// with it; for a context that can be cancelled, rueidis would from then on send all calls from a goroutine of its own, which costs a
// lone caller a quarter of its CPU time.
func (s *Subscriber) hasListener(name string) error {
	came := make(chan error, 1)
	go func() {
		counts, err := s.client.Do(context.Background(), s.client.B().Arbitrary("PUBSUB", "NUMSUB", name).Build()).AsIntMap()
		if err == nil && counts[name] == 0 {
			err = errDeaf
		}
		came <- err
	}()
	select {
	case err := <-came:
		return err
	case <-time.After(s.pace.answer):
		return context.DeadlineExceeded
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// goLive makes the channels live, as the connection is not deaf or nobody can ask. The listeners must look for what
// was published before that.
func (n *node) goLive(l *link) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.deaf = 0
	if n.link != l || l.hears {
		return
	}
	l.hears = true
	for _, ch := range n.channels {
		if ch.phase == joined {
			ch.begin()
		}
	}
}

// keepForNow reports whether a deaf connection is kept for now: one that has been deaf from the start. The next one is kept
// for twice as long.
func (n *node) keepForNow(l *link, began time.Time) bool {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	keep := max(n.deaf, l.pace.verify)
	if l.hears || time.Since(began) >= keep {
		n.deaf = min(2*keep, l.pace.deaf)
		return false
	}
	return true
}
