package wire

import (
	"context"
	"math"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	semaphoreAcquire      = load("semaphore_acquire")
	semaphoreRenew        = load("semaphore_renew")
	semaphoreRelease      = load("semaphore_release")
	semaphoreForceRelease = load("semaphore_force_release")
	semaphoreSetEntries   = load("semaphore_set_entries")
	semaphoreInspect      = showing("semaphore_inspect")
	semaphoreResize       = load("semaphore_resize")
)

// Semaphore runs the scripts of keys that several owners may hold at the same time, on one Redis.
// Its methods are like those of [Redis].
type Semaphore struct {
	onRedis
	text string // how many permits a key has, in digits; immutable
}

// NewSemaphore returns a Semaphore on redis, for keys with n permits. It does no I/O.
func NewSemaphore(redis *Redis, n int) *Semaphore {
	text := decimal(int64(n))
	return &Semaphore{onRedis{
		redis: redis, keyType: "zset", keys: func(key string) []string { return []string{key, permitRecord(key)} }, parse: parsePermits,
		channel: scripts.SemaphoreChannel, inspect: semaphoreInspect,
		renew:      renewScript{semaphoreRenew, func(key, _ string) string { return permitRecord(key) }, text},
		setEntries: semaphoreSetEntries, forceRelease: semaphoreForceRelease,
	}, text}
}

// permitRecord returns the hash with the number of permits of key, and with the entries of its owners.
func permitRecord(key string) string { return names.Of(names.PermitsPrefix, key) }

// Acquire takes one of the permits of a key for an owner, for one lease from now. Otherwise it changes
// nothing: Remaining is of the lease that ends first, or others have Agreed on another number.
// It may be repeated like [Redis.Acquire]; Release in doubt undoes what an unanswered call may have
// done.
func (p *Semaphore) Acquire(ctx context.Context, a AcquireRequest) (AcquireReply, error) {
	return p.redis.runAcquire(ctx, parsePermit, semaphoreAcquire, p.acquireInput(forOne(), a))
}

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each.
func (p *Semaphore) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[AcquireReply]) error {
	return runEach(ctx, p.redis, semaphoreAcquire, asks, p.acquireInput, results, parsePermit)
}

func (p *Semaphore) acquireInput(in input, a AcquireRequest) input {
	in.keys = append(in.keys, a.Key, permitRecord(a.Key), tombstone(a.Key, a.Owner))
	in.args = append(in.args, a.Owner, millis(a.Lease), p.text, p.redis.firstEntry(a.Label))
	return in
}

// Release ends a hold like [Redis.Release].
func (p *Semaphore) Release(ctx context.Context, h ReleaseRequest) (ReleaseReply, error) {
	return parseReleased(p.redis.run(ctx, semaphoreRelease, p.releaseInput(forOne(), h)))
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one for each.
func (p *Semaphore) ReleaseEach(ctx context.Context, holds []ReleaseRequest, results []Result[ReleaseReply]) error {
	return runEach(ctx, p.redis, semaphoreRelease, holds, p.releaseInput, results, parseReleased)
}

func (p *Semaphore) releaseInput(in input, h ReleaseRequest) input {
	more, what := h.more()
	in.keys = append(in.keys, h.Key, permitRecord(h.Key), more)
	in.args = append(in.args, h.Owner, scripts.SemaphoreChannel(h.Key), what)
	return in
}

// Resize sets how many permits key has, whatever the lockers say, until nobody has used it for a
// week. It may be repeated.
func (p *Semaphore) Resize(ctx context.Context, key string, n int) error {
	if err := check.Permits(n); err != nil {
		return notSent{err}
	}
	_, err := parseBool(p.redis.invoke(ctx, semaphoreResize, 2, key, permitRecord(key), decimal(int64(n)), scripts.SemaphoreChannel(key)))
	return err
}

// parsePermit is parseAcquired, or reads on which number others have agreed.
func parsePermit(m rueidis.RedisMessage, err error) (AcquireReply, error) {
	if err != nil || !m.IsArray() {
		return parseAcquired(m, err)
	}
	f := fieldsOf(m, nil)
	return result(f, AcquireReply{Agreed: int(f.integer(1, check.MaxPermits))})
}

func parsePermits(m rueidis.RedisMessage, err error) (first holdfast.Status, _ error) {
	f := fieldsOf(m, err)
	first.Permits = int(f.integer(0, math.MaxInt32))
	for f.more() {
		s := f.heldBy(first)
		if first.Holders == nil {
			first = s
		}
		first.Holders = append(first.Holders, holdfast.Holder{Owner: s.Owner, Label: s.Label, Entries: s.Entries, Remaining: s.Remaining})
	}
	return result(f, first)
}
