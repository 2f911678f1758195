package holdfast_test

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

// kinds are New of each kind, on one Redis.
func kinds(client rueidis.Client) map[string]func(...holdfast.Option) (io.Closer, error) {
	return map[string]func(...holdfast.Option) (io.Closer, error){
		"rlock":        func(o ...holdfast.Option) (io.Closer, error) { return rlock.New(client, o...) },
		"fair":         func(o ...holdfast.Option) (io.Closer, error) { return fair.New(client, o...) },
		"rwlock":       func(o ...holdfast.Option) (io.Closer, error) { return rwlock.New(client, o...) },
		"semaphore":    func(o ...holdfast.Option) (io.Closer, error) { return semaphore.New(client, 1, o...) },
		"multilock":    func(o ...holdfast.Option) (io.Closer, error) { return multilock.New([]rueidis.Client{client}, o...) },
		"holdfasttest": func(o ...holdfast.Option) (io.Closer, error) { return holdfasttest.New(o...) },
	}
}

// These are refused as they are. The suite contract has those of the options that it can give.
func TestF8_OptionsAreRefused(t *testing.T) {
	const year = 365 * 24 * time.Hour
	onOneRedis := []string{"rlock", "fair", "rwlock", "semaphore"}
	onRedis := append([]string{"multilock"}, onOneRedis...)
	kinds := kinds(redistest.Start(t).Client(t))
	for want, c := range map[string]struct {
		by   []string
		opts []holdfast.Option
	}{
		"WithLease: 0s":                      {onRedis, []holdfast.Option{holdfast.WithLease(0)}},
		"WithLogger: logger is nil":          {onRedis, []holdfast.Option{holdfast.WithLogger(nil)}},
		"WithFenceExpiry needs WithFencing":  {onRedis, []holdfast.Option{holdfast.WithFenceExpiry(time.Hour)}},
		"WithFenceExpiry: -1ms":              {onRedis, []holdfast.Option{holdfast.WithFencing(), holdfast.WithFenceExpiry(-time.Millisecond)}},
		"WithFenceExpiry: 1.5ms":             {onRedis, []holdfast.Option{holdfast.WithFencing(), holdfast.WithFenceExpiry(1500 * time.Microsecond)}},
		"WithLocalHandover: 200ms is longer": {onRedis, []holdfast.Option{holdfast.WithLease(100 * time.Millisecond), holdfast.WithLocalHandover(200 * time.Millisecond)}},
		"WithPrefix: with the prefix":        {onRedis, []holdfast.Option{holdfast.WithPrefix("redisson_lock_queue:")}},
		"WithLabel: label has 1025 bytes":    {onRedis, []holdfast.Option{holdfast.WithLabel(strings.Repeat("l", 1025))}},

		"WithReplicas: 2 replicas in 0s":       {onOneRedis, []holdfast.Option{holdfast.WithReplicas(2, 0)}},
		"WithReplicas: 3s is longer":           {onOneRedis, []holdfast.Option{holdfast.WithReplicas(2, 3*time.Second)}},
		"client is not of a Redis Cluster":     {onOneRedis, []holdfast.Option{holdfast.WithShardedPubSub(true)}},
		"WithWaiterTTL: 99ms":                  {[]string{"fair"}, []holdfast.Option{fair.WithWaiterTTL(99 * time.Millisecond)}},
		"WithWaiterTTL: 350400h0m0s is longer": {[]string{"fair"}, []holdfast.Option{fair.WithWaiterTTL(40 * year)}},
		"WithGrantLease: 0s":                   {[]string{"fair"}, []holdfast.Option{fair.WithGrantLease(0)}},
		"WithGrantLease: 1s is shorter":        {[]string{"fair"}, []holdfast.Option{fair.WithGrantLease(time.Second)}},
		"WithGrantLease: 9s is shorter":        {[]string{"fair"}, []holdfast.Option{fair.WithGrantLease(9 * time.Second), fair.WithWaiterTTL(10 * time.Second)}},
		"longer than WithMaxLease":             {[]string{"multilock"}, []holdfast.Option{multilock.WithMaxLease(time.Second)}},
		"WithMaxLease: 1ms":                    {[]string{"multilock"}, []holdfast.Option{multilock.WithMaxLease(time.Millisecond)}},
		"WithNodeTimeout: 1µs":                 {[]string{"multilock"}, []holdfast.Option{multilock.WithNodeTimeout(time.Microsecond)}},
		"WithClockFaults: -1 of 1":             {[]string{"multilock"}, []holdfast.Option{multilock.WithClockFaults(-1)}},
	} {
		for _, kind := range c.by {
			l, err := kinds[kind](c.opts...)
			require.Nil(t, l, "%s: %s", kind, want)
			locktest.RequireSentinel(t, err, holdfast.ErrInvalidArgument, kind+": ")
			require.ErrorContains(t, err, want)
		}
	}
}

// An option does the same with each kind, or is refused by name.
func TestOptionsOfAnotherKindAreRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for _, c := range []struct {
		option holdfast.Option
		name   string
		of     []string // the other kinds refuse it
	}{
		{fair.WithWaiterTTL(time.Second), "fair.WithWaiterTTL", []string{"fair"}},
		{fair.WithGrantLease(time.Minute), "fair.WithGrantLease", []string{"fair"}},
		{fair.WithConfirmedGrants(), "fair.WithConfirmedGrants", []string{"fair"}},
		{multilock.WithNodeTimeout(time.Second), "multilock.WithNodeTimeout", []string{"multilock"}},
		{multilock.WithMaxLease(time.Minute), "multilock.WithMaxLease", []string{"multilock"}},
		{multilock.WithoutRestartGuard(), "multilock.WithoutRestartGuard", []string{"multilock"}},
		{multilock.WithoutEvictionGuard(), "multilock.WithoutEvictionGuard", []string{"multilock"}},
		{multilock.WithClockFaults(0), "multilock.WithClockFaults", []string{"multilock"}},
		{holdfast.WithReplicas(1, time.Second), "WithReplicas", []string{"rlock", "fair", "rwlock", "semaphore"}},
		{holdfast.WithReplicas(0, time.Second), "WithReplicas", nil},
		{holdfast.WithShardedPubSub(true), "WithShardedPubSub", nil}, // no kind on a client of one Redis
		{holdfast.WithPrefix("p:"), "WithPrefix", []string{"rlock", "fair", "rwlock", "semaphore", "multilock"}},
		{holdfast.WithFencing(), "WithFencing", []string{"rlock", "fair", "rwlock", "multilock", "holdfasttest"}},
		{holdfast.WithLogger(slog.Default()), "WithLogger", []string{"rlock", "fair", "rwlock", "semaphore", "multilock"}},
		{holdfast.WithObserver(holdfast.Observer{Woken: func(holdfast.WokenEvent) {}}), "WithObserver", []string{"rlock", "fair", "rwlock", "semaphore", "multilock"}},
		{nil, "option is nil", nil},
	} {
		for kind, open := range kinds(client) {
			l, err := open(c.option)
			if slices.Contains(c.of, kind) {
				require.NoError(t, err, "%s: %s", kind, c.name)
				require.NoError(t, l.Close())
				continue
			}
			require.ErrorIs(t, err, holdfast.ErrInvalidArgument, "%s: %s", kind, c.name)
			require.ErrorContains(t, err, kind+": ")
			require.ErrorContains(t, err, c.name)
		}
	}
	_, err := multilock.New([]rueidis.Client{client}, holdfast.WithReplicas(2, time.Hour))
	require.ErrorContains(t, err, "WithReplicas is an option of the kinds on one Redis")
}

// Only fair has a queue of all processes, and so places in it.
func TestOnPlaceIsRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	r := locktest.Opened(rlock.New(client))(t)
	m := locktest.Opened(multilock.New([]rueidis.Client{client}, multilock.WithoutRestartGuard()))(t)
	onPlace := holdfast.OnPlace(func(int) {})
	for _, l := range []holdfast.Locker{r, m} {
		locktest.RequireSentinel(t, locktest.ErrOf(l.Lock(t.Context(), "k", onPlace)), holdfast.ErrInvalidArgument, "OnPlace")
	}
	locktest.RequireSentinel(t, locktest.ErrOf(multilock.LockAll(t.Context(), multilock.Keys(r, "k"), onPlace)), holdfast.ErrInvalidArgument, "OnPlace")
}
