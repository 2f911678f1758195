package pubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/redact"
)

// batch is how many channels share a command. Their acknowledgements fit into the 16 KiB of a connection that Redis does
// not count against client-output-buffer-limit.
const batch = 200

// run is the loop: it owns the connection and makes the server's subscriptions follow the wanted ones, until the end of
// the node.
func (n *node) run() {
	retry, redial := loop.Backoff{}, redialling
	for n.awaitWork() {
		l := n.dial()
		began, err := n.serve(l)
		l.cancel(err)
		n.detach()
		n.awaitEnd(l)
		var wait time.Duration
		switch {
		case n.lasting(err):
			wait = loop.Jitter(n.s.pace.refused)
		case unreachable(err):
			wait = redial.Below(n.s.pace.long)
		case time.Since(began) > n.s.pace.stood:
			retry.Last, redial.Last = 0, 0
		default:
			wait = retry.Below(n.s.pace.most)
		}
		n.report(err)
		loop.Sleep(wait, n.ctx.Done())
	}
}

// awaitWork returns true when there is a channel to serve, false at the end of the node.
func (n *node) awaitWork() bool {
	for n.ctx.Err() == nil {
		n.s.mu.Lock()
		work := len(n.channels) > 0
		n.s.mu.Unlock()
		if work {
			return true
		}
		select {
		case <-n.poke:
		case <-n.ctx.Done():
		}
	}
	return false
}

// awaitEnd waits until nothing is left of the connection, after the end of the node no longer than the grace.
func (n *node) awaitEnd(l *link) {
	select {
	case <-l.gone:
	case <-n.ctx.Done():
		loop.Sleep(n.s.pace.grace, l.gone)
	}
}

// serve sends what the queue asks for until the connection is lost or must be given up, and returns why, and since when
// it has served.
func (n *node) serve(l *link) (began time.Time, err error) {
	select {
	case <-l.ready:
	case <-l.ctx.Done():
		return time.Now(), context.Cause(l.ctx)
	}
	began = time.Now()
	n.s.mu.Lock()
	n.up = true
	n.s.mu.Unlock()
	if err := l.loaded(); err != nil {
		return began, cmp.Or(context.Cause(l.ctx), err)
	}
	n.served = true
	retry := loop.Backoff{}
	var refusedNames []string  // refused channels
	var again <-chan time.Time // when to ask for them once more
	for {
		join, leave := n.next(batch)
		if len(join)+len(leave) == 0 {
			n.reportRefused(len(refusedNames), nil)
			select {
			case <-n.poke:
			case <-again:
				n.setPhase(refusedNames, refused, absent)
				refusedNames, again = nil, nil
			case <-l.ctx.Done():
				return began, context.Cause(l.ctx)
			}
			continue
		}
		forbidden, err := n.join(l, join)
		if len(forbidden) > 0 {
			if refusedNames = append(refusedNames, forbidden...); again == nil {
				again = time.After(loop.Jitter(n.s.pace.refused))
			}
		}
		if err == nil {
			err = n.leave(l, leave)
		} else {
			n.setPhase(leave, leaving, joined)
		}
		switch {
		case err == nil:
			retry.Last = 0
		case l.ctx.Err() != nil:
			return began, context.Cause(l.ctx)
		case isReply(err): // the server serves nobody at present
			loop.Sleep(retry.Below(n.s.pace.most), l.ctx.Done())
		default:
			return began, err
		}
	}
}

// join subscribes the channels and returns those that this user has no right to hear. Those that this node does not have
// go astray. After a reply error all others that failed are in the queue again; after any other error the connection
// must be given up.
func (n *node) join(l *link, names []string) (forbidden []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	var refusal error
	for i, e := range l.subscribe(names) {
		switch {
		case e == nil:
			n.report(nil)
		case hasCode(e, "NOPERM"):
			forbidden, refusal = append(forbidden, names[i]), e
		case hasCode(e, "MOVED", "CLUSTERDOWN"):
			n.setPhase(names[i:i+1], joining, astray)
			n.s.stray()
		default:
			n.setPhase(names[i:i+1], joining, absent)
			err = e
		}
	}
	n.setPhase(forbidden, joining, refused)
	loop.Poke(l.asks) // the own one may be among them
	if len(forbidden) > 0 {
		n.reportRefused(len(forbidden), refusal)
	}
	return forbidden, err
}

// leave unsubscribes the channels. After an error that is transient they are in the queue again; after any other error the
// connection must be given up, which unsubscribes them too.
func (n *node) leave(l *link, names []string) error {
	if len(names) == 0 {
		return nil
	}
	err := l.unsubscribe(names)
	switch {
	case err == nil:
		n.setPhase(names, leaving, absent) // those without an acknowledgement, as the server had ended them before
	case transient(err):
		n.setPhase(names, leaving, joined)
	case isReply(err):
		err = fmt.Errorf("UNSUBSCRIBE refused: %w", err)
	}
	return err
}

// report logs a change in what is wrong with the connection; nil means that it works.
func (n *node) report(err error) {
	trouble := ""
	switch {
	case n.lasting(err):
		trouble = "holdfast: pubsub: connection refused, trying again with a long delay"
	case err != nil:
		trouble = "holdfast: pubsub: connection lost, trying again"
	}
	if trouble == n.trouble || n.ctx.Err() != nil {
		return
	}
	n.trouble = trouble
	if err != nil {
		n.log.Warn(trouble, "error", redact.Error(err))
	} else {
		n.log.Info("holdfast: pubsub: connection restored")
	}
}

// reportRefused logs when channels begin to be refused and when none is any more.
func (n *node) reportRefused(channels int, err error) {
	if n.refusing == (channels > 0) {
		return
	}
	n.refusing = channels > 0
	if n.refusing {
		n.log.Warn("holdfast: pubsub: channels refused, trying again with a long delay", "channels", channels, "error", err)
	} else {
		n.log.Info("holdfast: pubsub: no channel is refused any more")
	}
}

// reportUnverified logs once why nobody can ask.
func (n *node) reportUnverified(err error) {
	n.s.mu.Lock()
	known := n.unverified
	n.unverified = true
	n.s.mu.Unlock()
	if !known {
		n.log.Warn("holdfast: pubsub: cannot ask whether subscriptions are at the server that carries out calls", "error", redact.Error(err))
	}
}

// lasting reports whether a failure to connect will last until somebody acts. A password that was right is being changed: the
// client or the server will have the new one soon.
func (n *node) lasting(err error) bool {
	return errors.Is(err, rueidis.ErrClosing) || !n.served && hasCode(err, "WRONGPASS", "NOAUTH", "NOPERM", "AUTH ")
}

// unreachable reports whether nobody took the connection: trying again costs the server nothing.
func unreachable(err error) bool {
	op := (*net.OpError)(nil)
	return errors.As(err, &op) && op.Op == "dial"
}
