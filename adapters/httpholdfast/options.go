package httpholdfast

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Option is a setting of [New].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	wait, retryAfter time.Duration
	busy             int
	log              *slog.Logger
}

// WithWait makes a request wait for its turn, for at most d. Default 0: it does not wait. The
// locker's WithMaxWaiters bounds how many wait.
func WithWait(d time.Duration) Option { return option(func(c *config) { c.wait = d }) }

// WithBusyStatus chooses the answer if another request has the key: [http.StatusConflict] or
// [http.StatusTooManyRequests]. Default 409.
func WithBusyStatus(status int) Option { return option(func(c *config) { c.busy = status }) }

// WithRetryAfter chooses the header Retry-After of the answers 409, 429 and 503 to requests that
// were not served: at least 1 s, in whole seconds. Default 1 s.
func WithRetryAfter(d time.Duration) Option { return option(func(c *config) { c.retryAfter = d }) }

// WithLogger logs each request that did not get its lock for a reason other than a busy key
// or a client that has gone, and each that lost its lock. Silent by default.
func WithLogger(log *slog.Logger) Option { return option(func(c *config) { c.log = log }) }

func newConfig(opts []Option) (*config, error) {
	c := &config{busy: http.StatusConflict, retryAfter: time.Second, log: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o == nil {
			return nil, errs.Invalid("an option is nil")
		}
		o.apply(c)
	}
	switch {
	case c.wait < 0:
		return nil, errs.Invalid("WithWait: %v is negative", c.wait)
	case c.busy != http.StatusConflict && c.busy != http.StatusTooManyRequests:
		return nil, errs.Invalid("WithBusyStatus: %d is neither 409 nor 429", c.busy)
	case c.retryAfter < time.Second || c.retryAfter%time.Second != 0:
		return nil, errs.Invalid("WithRetryAfter: %v is not a whole number of seconds of at least 1s", c.retryAfter)
	case c.log == nil:
		return nil, errs.Invalid("WithLogger: the logger is nil")
	}
	return c, nil
}
