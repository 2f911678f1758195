package wire

import (
	"context"
	"math"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	rwlockAcquire      = load("rwlock_acquire")
	rwlockRelease      = load("rwlock_release")
	rwlockRenew        = load("rwlock_renew")
	rwlockSetEntries   = load("rwlock_set_entries")
	rwlockInspect      = showing("rwlock_inspect")
	rwlockShare        = load("rwlock_share")
	rwlockForceRelease = load("rwlock_force_release")
	rwlockWithdraw     = load("rwlock_withdraw")
)

// WriteSuffix ends the owners of writers.
const WriteSuffix = ":write"

// RWLock runs the scripts of read/write locks on one Redis, for one client of readers or of
// writers. Its methods are like those of [Redis].
type RWLock struct {
	onRedis
	lockerID string // the start of its owners, and the name of its wishes; immutable
}

// NewRWLock returns a RWLock on redis. It does no I/O.
func NewRWLock(redis *Redis, lockerID string) *RWLock {
	return &RWLock{onRedis{
		redis: redis, keyType: "hash", keys: func(key string) []string { return []string{key, absentKey(key)} }, parse: parseReadWrite,
		channel: scripts.RWLockChannel, inspect: rwlockInspect, renew: renewScript{script: rwlockRenew, secondKey: timeout},
		setEntries: rwlockSetEntries, forceRelease: rwlockForceRelease,
	}, lockerID}
}

// RWLockAcquireRequest is one hold of a read/write lock that is asked for. A writer's owner ends with
// WriteSuffix. Beside a writer there is no fencing.
type RWLockAcquireRequest struct {
	AcquireRequest
	Wish time.Duration // how long the client wishes for the lock if it is refused, up to a minute; 0: it does not wait
}

// Acquire takes a lock for a reader beside other readers, or for a writer if it is free. If others
// go first, it changes nothing but the wish of the client. It may be repeated like [Redis.Acquire];
// Release in doubt undoes what an unanswered call may have done.
func (r *RWLock) Acquire(ctx context.Context, a RWLockAcquireRequest) (AcquireReply, error) {
	return r.redis.runAcquire(ctx, a.Fencing.parser(), rwlockAcquire, r.acquireInput(forOne(), a))
}

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each. All of
// them have fencing or none.
func (r *RWLock) AcquireEach(ctx context.Context, asks []RWLockAcquireRequest, results []Result[AcquireReply]) error {
	return runEach(ctx, r.redis, rwlockAcquire, asks, r.acquireInput, results, asks[0].Fencing.parser())
}

func (r *RWLock) acquireInput(in input, a RWLockAcquireRequest) input {
	in.keys = append(in.keys, a.Key, tombstone(a.Key, a.Owner), timeout(a.Key, a.Owner), wishes(a.Key), absentKey(a.Key))
	in.args = append(in.args, a.Owner, millis(a.Lease), r.redis.firstEntry(a.Label), r.lockerID, millis(a.Wish), a.Beside)
	return in.fenced(a.AcquireRequest)
}

// RWLockReleaseRequest is a hold of a read/write lock that is to end.
type RWLockReleaseRequest struct {
	ReleaseRequest
	Wish time.Duration // how long other writers of the client wish for the lock, up to a minute; 0: none waits
}

// Release ends a hold like [Redis.Release], and wakes those who may take the lock now.
func (r *RWLock) Release(ctx context.Context, h RWLockReleaseRequest) (ReleaseReply, error) {
	return parseReleased(r.redis.run(ctx, rwlockRelease, r.releaseInput(forOne(), h)))
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one for each.
func (r *RWLock) ReleaseEach(ctx context.Context, holds []RWLockReleaseRequest, results []Result[ReleaseReply]) error {
	return runEach(ctx, r.redis, rwlockRelease, holds, r.releaseInput, results, parseReleased)
}

func (r *RWLock) releaseInput(in input, h RWLockReleaseRequest) input {
	more, what := h.more()
	in.keys = append(in.keys, h.Key, timeout(h.Key, h.Owner), wishes(h.Key), absentKey(h.Key), more)
	in.args = append(in.args, h.Owner, scripts.RWLockChannel(h.Key), what, r.lockerID, millis(h.Wish))
	return in
}

// MayShare reports whether later readers of the client may share the hold of owner, a reader: it
// lives, and no writer waits.
func (r *RWLock) MayShare(ctx context.Context, key, owner string) (bool, error) {
	return parseBool(r.redis.invoke(ctx, rwlockShare, 3, key, timeout(key, owner), wishes(key), owner))
}

func parseReadWrite(m rueidis.RedisMessage, err error) (holdfast.Status, error) {
	f := fieldsOf(m, err)
	if len(f.rest) == 0 {
		return holdfast.Status{}, f.err
	}
	s := holdfast.Status{Mode: f.text(), Readers: int(f.integer(0, math.MaxInt32))}
	return result(f, f.heldBy(s))
}

// Withdraw ends the wish of the client for key, and wakes those who let it go first. It may
// be repeated.
func (r *RWLock) Withdraw(ctx context.Context, key string) error {
	_, err := parseBool(r.redis.invoke(ctx, rwlockWithdraw, 1, wishes(key), r.lockerID, scripts.RWLockChannel(key)))
	return err
}

// timeout returns the key that lasts as long as the owner's hold of the read/write lock key.
func timeout(key, owner string) string {
	before, after := names.Braces(key)
	return before[1:] + key + after + ":" + owner + names.ReadHolds + ":1"
}

// wishes returns the hash of clients that wait for the read/write lock key.
func wishes(key string) string { return names.Of(names.WishesPrefix, key) }

// absentKey returns a key that never exists, as the tombstone of no owner; see parts/living.lua.
func absentKey(key string) string { return tombstone(key, "") }
