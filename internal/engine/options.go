package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// errorf returns an error with the lock kind's name as its prefix.
func (c *Config) errorf(format string, args ...any) error {
	return errs.Invalid(c.Kind+": "+format, args...)
}

// Configure returns the configuration of a lock kind with these options, for the kind's own changes and then
// [Config.Check]. own is where its own options go. function is what users have called.
func Configure(kind, function string, own any, opts []holdfast.Option) (Config, error) {
	c := Config{Kind: kind, LockerID: uuid.NewString(), Settings: holdfast.Settings{
		Label: hostAndProcess(), Lease: holdfast.DefaultLease, LocalHandover: holdfast.DefaultLocalHandover,
		Logger: slog.New(slog.DiscardHandler), Own: own,
	}}
	return c, check.Apply(kind+": "+function, &c.Settings, opts)
}

// hostAndProcess is the default label.
var hostAndProcess = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
})

// Check refuses invalid settings and fills in the defaults of the others. Its errors name
// the option.
func (c *Config) Check() error {
	if err := check.Settings(&c.Settings); err != nil {
		return c.errorf("%w", err)
	}
	expiry := *cmp.Or(c.FenceExpiry, new(holdfast.DefaultFenceExpiry))
	badLabel, badPrefix := check.Label(c.Label), error(nil)
	if c.Prefix != "" {
		badPrefix = check.Key(c.Prefix + "k")
	}
	switch {
	case badPrefix != nil:
		return c.errorf("WithPrefix: with the prefix %s: %w", errs.Quote(c.Prefix), badPrefix)
	case badLabel != nil:
		return c.errorf("WithLabel: %w", badLabel)
	case c.LocalHandover < 0:
		return c.errorf("WithLocalHandover: %v is negative", c.LocalHandover)
	case c.LocalHandover > c.Lease:
		return c.errorf("WithLocalHandover: %v is longer than the lease of %v", c.LocalHandover, c.Lease)
	case c.MaxHold > 0 && c.MaxHold <= c.LocalHandover:
		return c.errorf("WithMaxHold: %v is not longer than WithLocalHandover, %v", c.MaxHold, c.LocalHandover)
	case c.Replicas < 0 || c.ReplicaTimeout < 0 || (c.Replicas == 0) != (c.ReplicaTimeout == 0):
		return c.errorf("WithReplicas: %d replicas in %v: both must be greater than zero", c.Replicas, c.ReplicaTimeout)
	case c.ReplicaTimeout%time.Millisecond != 0:
		return c.errorf("WithReplicas: %v is not a whole number of milliseconds", c.ReplicaTimeout)
	case c.ReplicaTimeout > calls.Timeout(c.Lease)/2:
		return c.errorf("WithReplicas: %v is longer than %v, half of the time of a call", c.ReplicaTimeout, calls.Timeout(c.Lease)/2)
	case c.FenceExpiry != nil && !c.Fencing:
		return c.errorf("WithFenceExpiry needs WithFencing")
	case expiry < 0 || expiry%time.Millisecond != 0:
		return c.errorf("WithFenceExpiry: %v is negative or not a whole number of milliseconds", expiry)
	case c.Logger == nil:
		return c.errorf("WithLogger: logger is nil")
	}
	c.FenceExpiry = &expiry
	return nil
}

// nameOf returns the name of key in Redis, which is its own behind the prefix. It refuses a
// key that cannot be locked.
func (e *Engine) nameOf(key string) (string, error) {
	if key == "" || e.Prefix == "" {
		return key, check.Key(key)
	}
	name := e.Prefix + key
	if err := check.Key(name); err != nil {
		return "", fmt.Errorf("with the prefix %s: %w", errs.Quote(e.Prefix), err)
	}
	return name, nil
}

// KeyOf is what users call the key of a name.
func (e *Engine) KeyOf(name string) string { return name[len(e.Prefix):] }

// Terms are what a caller asks of an outermost hold. They have four fields, as Go keeps a
// larger struct in memory, which every lock would pay for.
type Terms struct {
	Lease   time.Duration // of the hold
	MaxHold time.Duration // cap on a renewed hold; 0: none; Fixed: it is never renewed
	Label   *string       // nil: that of the locker
	beside  *entry        // the writer that is the caller of a reader; nil: none is
}

// Fixed in place of a cap says that the hold is never renewed.
const Fixed time.Duration = -1

// Default reports whether the terms are the default: a renewed hold without a cap, with the
// locker's lease and label. Only such holds are handed over locally.
func (t Terms) Default() bool { return t.MaxHold == 0 && t.Label == nil && t.beside == nil }

// CheckCall returns an error that says what is wrong if the arguments of a lock call are.
func (e *Engine) CheckCall(ctx context.Context, key string, opts []holdfast.LockOption) error {
	r := request{wait: -1}
	err := e.fill(&r, key, opts)
	if err == nil && !r.Default() && e.boundTo(ctx, r.name) != nil {
		err = errs.ErrNested
	}
	return err
}

// fill checks the other arguments of a lock call, and fills in what r asks for besides its wait. To return r would cost a
// refused TryLock a twentieth of its time.
func (e *Engine) fill(r *request, key string, opts []holdfast.LockOption) (err error) {
	r.Lease = e.Lease
	if r.name, err = e.nameOf(key); err != nil || len(opts) == 0 { // without options, nothing is allocated
		return err
	}
	opt, err := check.Options(opts, e.MaxHold, &r.wait)
	switch {
	case err != nil:
	case opt.OnPlace != nil && !e.Places:
		err = errs.Invalid("OnPlace: %s has no queue of all processes", e.Kind)
	case opt.FixedLease != nil && e.MaxLease > 0 && *opt.FixedLease > e.MaxLease:
		err = errs.Invalid("FixedLease: %v is longer than WithMaxLease, %v", *opt.FixedLease, e.MaxLease)
	}
	if err != nil {
		return err
	}
	if opt.FixedLease != nil {
		r.Lease, r.MaxHold = *opt.FixedLease, Fixed
	}
	if opt.MaxHold != nil {
		r.MaxHold = *opt.MaxHold
	}
	r.Label, r.onPlace = opt.Label, opt.OnPlace
	return nil
}

// warnOfEviction asks Redis, at the first lock and in the background, whether it may drop
// locks when it runs out of memory. It does nothing when the log drops warnings.
func (e *Engine) warnOfEviction() {
	if !e.Logger.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	e.Calls.TryGo(func(ctx context.Context) {
		policy, err := e.backend.EvictionPolicy(ctx)
		if err == nil && policy != "" && wire.Evicts(policy) {
			e.Logger.Warn("holdfast: Redis may evict locks that are held; set maxmemory-policy noeviction", "kind", e.Kind, "policy", policy)
		}
	})
}
