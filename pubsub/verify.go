package pubsub

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// A connection may be live but deaf: at another server than the one that carries out the client's calls, and with them
// the PUBLISHes of other clients. A name has moved, a proxy has changed its server, a master has become a replica. Nobody
// tells. On a Cluster, route looks after that: its servers know each other.

var errDeaf = errors.New("the server that carries out calls does not know this connection")

// ownChannel stands between the name of a channel and a random word, in the name of a channel that nobody else has. A user
// may hear it like the first, unless channels are allowed one by one.
const ownChannel = ":self:"

// verify gives the connection up when it is deaf. While somebody listens, it asks on the connection of the client's calls
// how many listen to a channel that only this connection has.
func (l *link) verify(n *node) {
	var own *Subscription
	name := ""
	leave := func() {
		if own != nil {
			own.Close()
			own = nil
		}
	}
	defer leave()
	for sleep(l.ctx, n.pause()); l.ctx.Err() == nil; sleep(l.ctx, n.pause()) {
		live := n.live(name)
		if live == "" {
			leave()
			continue
		}
		if own == nil {
			name = live + ownChannel + strconv.FormatUint(rand.Uint64(), 36)
			own = n.s.Subscribe(name)
		}
		if !l.heard(own) {
			if n.refuses(name) {
				n.reportUnverified(errOwnRefused)
				return
			}
			continue
		}
		switch err := n.s.knows(l.ctx, name); {
		case l.ctx.Err() != nil:
		case err == nil:
			n.verified(true)
		case err == errDeaf, errors.Is(err, rueidis.ErrClosing):
			n.verified(false)
			l.cancel(errDeaf)
		case isReply(err) && !passing(err) && !hasCode(err, "LOADING"): // above all NOPERM
			n.reportUnverified(err)
			return
		}
	}
}

// errOwnRefused is why a user whose channels are allowed one by one cannot ask.
var errOwnRefused = errors.New("the user may not listen to a channel of its own, whose name begins like that of a lock")

// refuses says whether the server has refused a channel.
func (n *node) refuses(name string) bool {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	ch := n.channels[name]
	return ch != nil && ch.phase == refused
}

// heard waits until sub is live, which takes longer than an answer if it is refused.
func (l *link) heard(sub *Subscription) bool {
	late := time.NewTimer(l.pace.answer)
	defer late.Stop()
	for !sub.State().Live {
		select {
		case <-sub.Wake():
		case <-late.C:
			return false
		case <-l.ctx.Done():
			return false
		}
	}
	return true
}

// knows asks the server of the client's calls whether anybody listens to a channel.
func (s *Subscriber) knows(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s.pace.answer)
	defer cancel()
	counts, err := s.client.Do(ctx, s.client.B().Arbitrary("PUBSUB", "NUMSUB", name).Build()).AsIntMap()
	if err == nil && counts[name] == 0 {
		err = errDeaf
	}
	return err
}

// live is a channel, not own, that somebody listens to on the present connection; "": none.
func (n *node) live(own string) string {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for name, ch := range n.channels {
		if name != own && ch.wanted() && ch.phase == joined {
			return name
		}
	}
	return ""
}

// pause is the time until the next question.
func (n *node) pause() time.Duration {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	return max(n.deaf, n.s.pace.verify)
}

// verified takes in an answer. While each new connection is deaf as well, the pauses double.
func (n *node) verified(heard bool) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if heard {
		n.deaf = 0
	} else {
		n.deaf = min(2*max(n.deaf, n.s.pace.verify), n.s.pace.deaf)
	}
}
