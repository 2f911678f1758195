package pubsub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"
)

// batch is how many channels share a command. Their acknowledgements fit into the 16 KiB of a connection that Redis does
// not count against client-output-buffer-limit.
const batch = 200

// run is the loop: it owns the connection, makes the server's subscriptions follow the wanted ones, and ends with Close.
func (s *Subscriber) run() {
	defer close(s.done)
	retry := backoff{pace: s.pace}
	for s.awaitWork() {
		l := s.dial()
		began, err := s.serve(l)
		l.cancel(err)
		s.detach()
		s.awaitEnd(l)
		var wait time.Duration
		switch {
		case lasting(err):
			wait = jitter(s.pace.refused)
		case time.Since(began) > s.pace.stood:
			retry.last = 0
		default:
			wait = retry.next()
		}
		s.report(err)
		sleep(s.ctx, wait)
	}
}

// awaitWork returns true when there is a channel to serve, false when the Subscriber was closed.
func (s *Subscriber) awaitWork() bool {
	for s.ctx.Err() == nil {
		s.mu.Lock()
		n := len(s.channels)
		s.mu.Unlock()
		if n > 0 {
			return true
		}
		select {
		case <-s.poke:
		case <-s.ctx.Done():
		}
	}
	return false
}

// awaitEnd waits until nothing is left of the connection, after Close no longer than the grace.
func (s *Subscriber) awaitEnd(l *link) {
	select {
	case <-l.gone:
		return
	case <-s.ctx.Done():
	}
	select {
	case <-l.gone:
	case <-time.After(s.pace.grace):
	}
}

// serve sends what the queue asks for until the connection is lost or has to be given up, and returns why, and when it
// began to.
func (s *Subscriber) serve(l *link) (began time.Time, err error) {
	select {
	case <-l.ready:
	case <-l.ctx.Done():
		return began, context.Cause(l.ctx)
	}
	began = time.Now()
	retry := backoff{pace: s.pace}
	var outcasts []string      // refused channels
	var again <-chan time.Time // when to ask for them once more
	for {
		join, leave := s.next(batch)
		if len(join)+len(leave) == 0 {
			s.reportRefused(len(outcasts), nil)
			select {
			case <-s.poke:
			case <-again:
				s.move(outcasts, refused, absent)
				outcasts, again = nil, nil
			case <-l.ctx.Done():
				return began, context.Cause(l.ctx)
			}
			continue
		}
		no, err := s.join(l, join)
		if len(no) > 0 {
			if outcasts = append(outcasts, no...); again == nil {
				again = time.After(jitter(s.pace.refused))
			}
		}
		if err == nil {
			err = s.leave(l, leave)
		} else {
			s.move(leave, leaving, joined)
		}
		switch {
		case err == nil:
			retry.last = 0
		case l.ctx.Err() != nil:
			return began, context.Cause(l.ctx)
		case isReply(err): // the server serves nobody at present
			sleep(l.ctx, retry.next())
		default:
			return began, err
		}
	}
}

// join subscribes the channels and returns those that this user may not hear. After a reply error all others that failed
// are in the queue again; after any other error the connection has to be given up.
func (s *Subscriber) join(l *link, names []string) (no []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	err = l.subscribe(names...)
	switch {
	case err == nil:
		s.report(nil)
		return nil, nil
	case !hasCode(err, "NOPERM"):
		s.move(names, joining, absent)
		return nil, err
	}
	refusal, errs := err, []error{err}
	if len(names) > 1 { // one forbidden name is enough: find out which
		errs = l.subscribeEach(names)
	}
	err = nil
	for i, e := range errs {
		switch {
		case hasCode(e, "NOPERM"):
			no = append(no, names[i])
		case e != nil:
			s.move(names[i:i+1], joining, absent)
			err = e
		}
	}
	s.move(no, joining, refused)
	s.reportRefused(len(no), refusal)
	return no, err
}

// leave unsubscribes the channels. After an error that is passing they are in the queue again; after any other error the
// connection has to be given up, which unsubscribes them too.
func (s *Subscriber) leave(l *link, names []string) error {
	if len(names) == 0 {
		return nil
	}
	err := l.unsubscribe(names...)
	switch {
	case passing(err):
		s.move(names, leaving, joined)
	case isReply(err):
		err = fmt.Errorf("UNSUBSCRIBE refused: %w", err)
	}
	return err
}

// report logs a change of what the connection suffers from; nil means that it works.
func (s *Subscriber) report(err error) {
	trouble := ""
	switch {
	case lasting(err):
		trouble = "pubsub: connection refused, trying again with a long delay"
	case err != nil:
		trouble = "pubsub: connection lost, trying again"
	}
	if trouble == s.trouble || s.ctx.Err() != nil {
		return
	}
	s.trouble = trouble
	if err != nil {
		s.log.Warn(trouble, "error", err)
	} else {
		s.log.Info("pubsub: connection restored")
	}
}

// reportRefused logs when channels begin to be refused and when none is any more.
func (s *Subscriber) reportRefused(n int, err error) {
	if s.refusing == (n > 0) {
		return
	}
	s.refusing = n > 0
	if s.refusing {
		s.log.Warn("pubsub: channels refused, trying again with a long delay", "channels", n, "error", err)
	} else {
		s.log.Info("pubsub: no channel is refused any more")
	}
}

// lasting tells whether a failure to connect will last until somebody acts.
func lasting(err error) bool {
	return errors.Is(err, rueidis.ErrClosing) || hasCode(err, "WRONGPASS", "NOAUTH", "NOPERM", "AUTH ")
}

// backoff yields growing delays with jitter.
type backoff struct {
	pace pace
	last time.Duration
}

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.pace.first), b.pace.most)
	return jitter(b.last)
}

// jitter returns a random duration between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
