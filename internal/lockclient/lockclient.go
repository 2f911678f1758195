// Package lockclient makes rueidis clients that do nothing but lock, for the command and for
// the adapters of other clients. docs/redis.md says why they have these options.
package lockclient

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redact"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Suit makes o the options of a client that does nothing but lock. It keeps shorter times.
//
// The client repeats nothing: the lockers do, where it is safe.
func Suit(o *rueidis.ClientOption) {
	o.DisableCache, o.DisableRetry = true, true
	o.PipelineMultiplex, o.RingScaleEachConn = -1, 8
	o.ReadBufferEachConn, o.WriteBufferEachConn = 32<<10, 32<<10
	o.Dialer.Timeout = atMost(2*time.Second, o.Dialer.Timeout)
	o.Dialer.KeepAlive = max(0, o.Dialer.KeepAlive) // otherwise rueidis never asks whether a connection lives
	o.ConnWriteTimeout = atMost(3*time.Second, o.ConnWriteTimeout)
	o.ClusterOption.ShardsRefreshInterval = atMost(5*time.Second, o.ClusterOption.ShardsRefreshInterval)
	if s := &o.Sentinel; s.MasterSet != "" {
		s.Dialer.Timeout = atMost(o.Dialer.Timeout, s.Dialer.Timeout)
		s.Dialer.KeepAlive = cmp.Or(s.Dialer.KeepAlive, time.Second)
		s.TopologyRefreshInterval = atMost(5*time.Second, s.TopologyRefreshInterval)
	}
}

// atMost returns d, or bound if d is longer or no time at all.
func atMost(bound, d time.Duration) time.Duration {
	if d <= 0 {
		return bound
	}
	return min(d, bound)
}

// New returns a client, or an error, and then leaves nothing open: [holdfast.ErrUnavailable]
// if no server answers, or the refusal of one.
func New(o rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(o) // which may return a client with an error: one that has dialled in vain
	if err == nil {
		return client, nil
	}
	if wire.OutcomeOf(err).Final() {
		return nil, redact.Error(err)
	}
	return nil, fmt.Errorf("%w: %w", holdfast.ErrUnavailable, redact.Error(err))
}
