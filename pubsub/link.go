package pubsub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
)

// link is one connection. A second goroutine, which the loop starts, makes the calls that may block and cannot be
// cancelled: dialling and closing.
type link struct {
	pace    pace            // immutable
	sharded bool            // immutable; shard channels
	ctx     context.Context // immutable; ends when the connection is lost or given up, with the reason as its cause
	cancel  context.CancelCauseFunc
	ready   chan struct{} // immutable; closed when connected; never after a failed dial, whose error looks like an answer to a command
	asks    chan struct{} // immutable; one slot: the first question may be put now
	gone    chan struct{} // immutable; closed when that goroutine has ended and nothing is left of the connection

	client rueidis.DedicatedClient // written by that goroutine before ready is closed

	hears bool // guarded by Subscriber.mu; what calls publish reaches it, as far as anybody can ask
}

var (
	errDial    = errors.New("dial failed")
	errUnknown = errors.New("the client does not know the node")
)

// dial starts a connection, whose callbacks count from now on. A dial that fails ends the link's context.
func (n *node) dial() *link {
	l := &link{pace: n.s.pace, ready: make(chan struct{}), asks: make(chan struct{}, 1), gone: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(n.ctx)
	n.s.mu.Lock()
	l.sharded = n.s.sharded
	l.hears = n.s.slots != nil
	n.link = l
	n.s.mu.Unlock()
	go l.keep(n)
	return l
}

func (l *link) keep(n *node) {
	defer close(l.gone)
	client := n.client()
	if client == nil {
		n.introduce(l.ctx)
		l.cancel(errUnknown)
		return
	}
	slow := time.AfterFunc(n.s.pace.slow, func() {
		if l.ctx.Err() == nil {
			n.log.Warn("holdfast: pubsub: no dedicated connection of the client yet: the server does not answer, or the program uses all of ClientOption.BlockingPoolSize")
		}
	})
	l.client, _ = client.Dedicate()
	slow.Stop()
	// Closed, never given back to the pool: there a RESP2 connection would come back without its subscriptions' half, and
	// giving back a healthy one sends an UNSUBSCRIBE that has no deadline.
	defer l.client.Close()
	lost := l.client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { n.onMessage(l, m.Channel, m.Message) },
		OnSubscription: func(a rueidis.PubSubSubscription) { n.onSubscription(l, a.Kind, a.Channel) },
	})
	select {
	case err := <-lost:
		l.cancel(cmp.Or(err, errDial)) // rueidis shares one dead connection among all failed dials, and with it the place for the error
		return
	default:
		close(l.ready)
	}
	if n.s.slots == nil {
		go l.verify(n) // which nobody waits for: its question may have to dial
	}
	select {
	case err := <-lost:
		l.cancel(err)
	case <-l.ctx.Done():
	}
}

// loaded returns when the server no longer loads its data. It would take a subscription before that, but a live listener
// may believe that the server serves.
func (l *link) loaded() error {
	for again := redialling; ; loop.Sleep(again.Below(l.pace.long), l.ctx.Done()) {
		switch err := l.ping(); {
		case err != nil && !isReply(err):
			return err
		case !hasCode(err, "LOADING"):
			return nil
		}
	}
}

// ping is not B().Ping(): rueidis repeats that one by itself while the server is loading.
func (l *link) ping() error { return l.do(l.client.B().Arbitrary("PING").Build()) }

// subscribe subscribes all names and returns an answer for each. Classic channels go with one SUBSCRIBE, which the server
// accepts or refuses as a whole; it returns when the server has answered for the first, and the other acknowledgements
// follow. If the user has no right to hear one of them, or they are sharded and so of many slots, each has a command of
// its own.
func (l *link) subscribe(names []string) []error {
	if !l.sharded {
		err := l.do(l.client.B().Subscribe().Channel(names...).Build())
		if len(names) == 1 || !hasCode(err, "NOPERM") {
			return slices.Repeat([]error{err}, len(names))
		}
	}
	return l.each(names, func(name string) rueidis.Completed {
		if l.sharded {
			return l.client.B().Ssubscribe().Channel(name).Build()
		}
		return l.client.B().Subscribe().Channel(name).Build()
	})
}

// each sends a command for each name, all in one write, and returns an answer for each.
func (l *link) each(names []string, command func(name string) rueidis.Completed) []error {
	cmds := make(rueidis.Commands, len(names))
	for i, name := range names {
		cmds[i] = command(name)
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.pace.answer)
	defer cancel()
	errs := make([]error, len(names))
	for i, r := range l.client.DoMulti(ctx, cmds...) {
		errs[i] = r.Error()
	}
	return errs
}

// unsubscribe unsubscribes all names. If it returns an error for which transient is true, some may be left.
//
// rueidis v1.0.79 sends a PING along with UNSUBSCRIBE, and panics on its reader when the server refuses it (MISCONF,
// MASTERDOWN) or both (BUSY): it does not know whose answer came. So a PING is sent first. No script began before the
// start of a command that was served, so none can make the server answer BUSY earlier than busy-reply-threshold (5 s by
// default) after it. Until then the UNSUBSCRIBE is answered or the connection closed: pace.answer and the second that
// rueidis takes to close. The other two may still come within that one round trip.
func (l *link) unsubscribe(names []string) error {
	if err := l.ping(); err != nil && (!isReply(err) || transient(err)) {
		return err
	}
	if !l.sharded {
		return l.do(l.client.B().Unsubscribe().Channel(names...).Build())
	}
	errs := l.each(names, func(name string) rueidis.Completed { return l.client.B().Sunsubscribe().Channel(name).Build() })
	for _, err := range errs {
		if err != nil && !hasCode(err, "MOVED") { // the server has ended a subscription whose slot has moved
			return err
		}
	}
	return nil
}

func (l *link) do(cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(l.ctx, l.pace.answer)
	defer cancel()
	return l.client.Do(ctx, cmd).Error()
}

// transient reports whether err says that the server refuses even a PING at present, or the cluster a shard channel.
func transient(err error) bool { return hasCode(err, "BUSY", "MISCONF", "MASTERDOWN", "CLUSTERDOWN") }

// isReply reports whether the server itself answered with err.
func isReply(err error) bool {
	_, ok := rueidis.IsRedisErr(err)
	return ok
}

// hasCode reports whether err is the server's and starts with one of the codes.
func hasCode(err error, codes ...string) bool {
	return isReply(err) && slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(err.Error(), code) })
}
