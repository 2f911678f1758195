// Package httpholdfast uses holdfast locks to serve the HTTP requests of each key one at a
// time, across all processes of a service: the requests of one user, or the changes of one
// order.
package httpholdfast

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// New returns a middleware for net/http. key names the lock of a request, for example "user:"
// and the id of an authenticated user. Requests for which it returns "" are not locked. New
// fails with [holdfast.ErrInvalidArgument] on nil locks, a nil key, and bad options.
//
// The context of a request that has the lock is bound to its lease, see
// [holdfast.LeaseFrom]: it ends when the lock is lost. A handler whose context has ended
// answers by itself, or returns without an answer: then the client gets 503 after a loss,
// without Retry-After, as a part of the work may be done. A client that goes away ends the
// wait, or the context of the handler; with HTTP/1, net/http notices that only once the body of the
// request has been read.
//
// These answers come without a call of the handler, with the header Retry-After, so that a
// client may send the request again:
//
//   - 409, or what [WithBusyStatus] chose: another request had the key, for as long as
//     [WithWait] allows; or too many waited in this process.
//   - 503: Redis did not answer in time, or the locker is closed.
//
// The answer is 500, without Retry-After, if Redis refuses or the key cannot name a lock.
//
// An answer that fits into the buffer of net/http waits for the release of the lock for at most
// 100 ms, as a client that already has its answer could meet its own lock. If Redis is slower, the
// answer goes first, and the release goes on in the background: Close of the locker, after Shutdown
// of the server, waits for it. What a handler has written under a live lease is served, whatever
// becomes of the release.
//
// It costs one round trip before the handler, one after it, and a goroutine from the first to the
// last.
func New(locks holdfast.Locker, key func(*http.Request) string, opts ...Option) (func(http.Handler) http.Handler, error) {
	if locks == nil || key == nil {
		return nil, errs.Invalid("httpholdfast: New: locks or key is nil")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("httpholdfast: New: %w", err)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name := key(r); name != "" {
				c.serve(locks, name, next, w, r)
			} else {
				next.ServeHTTP(w, r)
			}
		})
	}, nil
}

// serve serves one request under its lock.
func (c *config) serve(locks holdfast.Locker, key string, next http.Handler, rw http.ResponseWriter, r *http.Request) {
	h := c.lock(r.Context(), locks, key)
	select {
	case ctx := <-h.locked:
		w := &writer{ResponseWriter: rw}
		var ended error
		func() {
			defer h.release() // also at a panic, which goes on to net/http
			next.ServeHTTP(w, r.WithContext(ctx))
			ended = context.Cause(ctx)
		}()
		if !w.responded && (over(ended) || over(h.err)) {
			fail(rw, http.StatusServiceUnavailable)
		}
	case err := <-h.done:
		c.explain(rw, r, err)
	}
}

// over reports whether a lease had ended before its handler did.
func over(err error) bool {
	return errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrClosed)
}

// releaseTime is how long an answer waits for the release: a healthy Redis needs less, and then a
// client that has its answer does not meet its own lock.
const releaseTime = 100 * time.Millisecond

// hold is the lock of one request.
type hold struct {
	locked chan context.Context // has the context of the handler, once the key is locked
	served chan struct{}        // closed when the handler has ended
	done   chan error           // has the error of Do
	err    error                // of Do, if that ended in the time of release
}

// release ends the hold. net/http sends the answer when its caller has returned.
func (h *hold) release() {
	close(h.served)
	select {
	case h.err = <-h.done:
	case <-time.After(releaseTime):
	}
}

// lock locks key on a goroutine of its own, which the release may keep for longer than the
// request; Close of the locker waits for the release.
func (c *config) lock(ctx context.Context, locks holdfast.Locker, key string) *hold {
	h := &hold{locked: make(chan context.Context, 1), served: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		ran := false
		err := locks.Do(ctx, key, func(bound context.Context) error {
			ran = true
			h.locked <- bound
			<-h.served
			return nil
		}, holdfast.WaitAtMost(c.wait))
		if ran && err != nil {
			c.log.WarnContext(ctx, "holdfast: served, but its lock failed", "err", err)
		}
		h.done <- err
	}()
	return h
}

// explain answers a request whose key was not locked.
func (c *config) explain(rw http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired), errors.Is(err, holdfast.ErrTooManyWaiters):
		c.refuse(rw, c.busy)
	case r.Context().Err() != nil: // before Redis answered
		c.refuse(rw, http.StatusServiceUnavailable)
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown), errors.Is(err, holdfast.ErrClosed):
		c.log.WarnContext(r.Context(), "holdfast: not served: no lock", "err", err)
		c.refuse(rw, http.StatusServiceUnavailable)
	default:
		c.log.ErrorContext(r.Context(), "holdfast: not served: no lock", "err", err)
		fail(rw, http.StatusInternalServerError)
	}
}

// refuse answers in place of the handler, which did not run.
func (c *config) refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Retry-After", strconv.Itoa(int(c.retryAfter.Seconds())))
	fail(w, status)
}

func fail(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }
