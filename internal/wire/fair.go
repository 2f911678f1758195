package wire

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

var (
	fairAcquire      = load("fair_acquire")
	fairEnter        = load("fair_enter")
	fairConfirm      = load("fair_confirm")
	fairRelease      = load("fair_release")
	fairLeave        = load("fair_leave")
	fairHeartbeat    = load("fair_heartbeat")
	fairForceRelease = load("fair_force_release")
	fairQueue        = showing("fair_queue")
)

// FairSettings are what a client's fair scripts have in common.
type FairSettings struct {
	LockerID   string        // the start of its owners
	WaiterTTL  time.Duration // how long a client without a heartbeat counts as alive
	GrantLease time.Duration // of a lock that is granted
	Members    int           // most waiters that follow in the run of a grant; 0: none
	// Fencing says how fence numbers are handed out. A hold gets Reserve of them if its grant
	// names a run, otherwise one.
	Fencing Fencing
}

// Fair runs the scripts of the fair queues on one Redis, for one client. Its methods are like those
// of [Redis].
type Fair struct {
	onRedis
	lockerID string // immutable
	settings string // ARGV[1]; immutable
	labelled string // the same with the label, for calls that keep it; immutable
}

// NewFair returns a Fair on redis. It does no I/O.
func NewFair(redis *Redis, s FairSettings) *Fair {
	settings := []string{
		millis(s.WaiterTTL), millis(s.GrantLease),
		millis(s.Fencing.Expiry), strconv.Itoa(s.Members), decimal(s.Fencing.Reserve),
	}
	f := &Fair{lockerID: s.LockerID, settings: strings.Join(settings, " "), onRedis: onRedis{
		redis: redis, keyType: "hash", keys: func(key string) []string { return []string{key, queue(key)} }, parse: parseStatus,
		inspect: inspect, renew: renewScript{script: renew}, setEntries: setEntries,
	}}
	if f.labelled = f.settings; redis.Label != "" {
		f.labelled += ";" + redis.Label
	}
	return f
}

// fairKeys is how many keys of a lock each of the scripts is given.
const fairKeys = 5

// commonInput adds to the input what all scripts are sent for a key, the tombstones of some owners, and more args.
func (f *Fair) commonInput(in input, key string, stones []string, more ...string) input {
	in.keys = appendFairKeys(slices.Grow(in.keys, fairKeys+2*len(stones)+1), key) // Enter and Leave send these owners as well
	for _, owner := range stones {
		in.keys = append(in.keys, tombstone(key, owner))
	}
	in.args = append(append(in.args, f.settings), more...)
	return in
}

func appendFairKeys(args []string, key string) []string {
	return appendNamed(append(args, key), key, names.QueuePrefix, names.ScoresPrefix, names.HeartbeatsPrefix, names.CounterPrefix)
}

// Grant is a lock that was given to a waiter.
type Grant struct {
	// Owner is the waiter's; "" if there is no grant.
	Owner string
	// Lease is how long the lock was granted for at that moment; 0 if it is only known that the
	// owner holds the lock; Confirm must find out more.
	Lease time.Duration
	// Fence and FenceEnd are the first and the last number reserved for the hold;
	// 0 if the client that granted it does not fence.
	Fence, FenceEnd int64
	// Members are the owners of the run, in their order.
	Members []string
}

// Acquire takes a key for an owner if it is free and no owner that is alive waits for it.
// If it is free and others wait, they are served. It may be repeated like [Redis.Acquire]; Leave
// undoes what an unanswered call may have done.
func (f *Fair) Acquire(ctx context.Context, a AcquireRequest) (AcquireReply, error) {
	return f.redis.runAcquire(ctx, parseAcquired, fairAcquire, f.acquireInput(forOne(), a))
}

// AcquireEach does what Acquire does for each of asks by itself, and fills results, one for each.
func (f *Fair) AcquireEach(ctx context.Context, asks []AcquireRequest, results []Result[AcquireReply]) error {
	return runEach(ctx, f.redis, fairAcquire, asks, f.acquireInput, results, parseAcquired)
}

func (f *Fair) acquireInput(in input, a AcquireRequest) input {
	return f.commonInput(in, a.Key, []string{a.Owner}, a.Owner, millis(a.Lease), f.redis.firstEntry(a.Label))
}

// OwnerState is the state of an owner that enters a queue.
type OwnerState int8

const (
	// Waiting: it is in the queue, or was granted the lock by this very call.
	Waiting OwnerState = 1
	// Holding: it holds the lock, since an earlier sending of this call.
	Holding OwnerState = 0
	// Gone: it was given up by Leave and can no longer enter.
	Gone OwnerState = -2
)

// EnterReply is the answer to Enter.
type EnterReply struct {
	States        []OwnerState // of the owners, in the order of the call
	Ahead         time.Duration
	Place         int  // of the last that waits: 1 is the next of all; they stand in a row; 0: not known
	Java          bool // Java holds the lock or waits before: its release wakes an owner by the owner's own channel
	HeartbeatSoon bool // a Java waiter has the turn, or the dead were too many for one call
	Grant         Grant
}

// Enter puts owners, each for the first time in its life, at the end of the
// queue of key, in their order. It may be repeated when its reply is lost: an owner that already
// waits keeps its place. Ahead is how far Heartbeat must keep their scores ahead of the server's
// clock.
func (f *Fair) Enter(ctx context.Context, key string, owners ...string) (EnterReply, error) {
	in := f.commonInput(forOne(), key, owners, owners...)
	in.args[0] = f.labelled
	m, err := f.redis.run(ctx, fairEnter, in)
	return parseEntered(m, err, len(owners))
}

// FairReply is the answer to Release and to Leave. Other replies, and messages, also have a Grant.
type FairReply struct {
	Ours          bool // Release: the hold was the owner's and has ended
	HeartbeatSoon bool // a Java waiter has the turn, or the dead were too many for one call
	Grant         Grant
}

// FairReleaseRequest is a hold of a fair lock that is to end. LastFence counts in doubt as well.
type FairReleaseRequest struct {
	ReleaseRequest
	Served []string // the members of the hold's run that have had their turn: they leave the queue
}

// Release ends a hold like [Redis.Release], and gives the key to the next waiter. A grant to a waiter
// of this client is lost with the reply; Heartbeat finds it.
func (f *Fair) Release(ctx context.Context, h FairReleaseRequest) (FairReply, error) {
	return parsePassed(f.redis.run(ctx, fairRelease, f.releaseInput(forOne(), h)))
}

// ReleaseEach does what Release does for each of holds by itself, and fills results, one for each. They
// have served equally many members, and all of them are in doubt or none.
func (f *Fair) ReleaseEach(ctx context.Context, holds []FairReleaseRequest, results []Result[FairReply]) error {
	return runEach(ctx, f.redis, fairRelease, holds, f.releaseInput, results, parsePassed)
}

func (f *Fair) releaseInput(in input, h FairReleaseRequest) input {
	var stones []string
	if h.Doubt {
		stones = []string{h.Owner}
	}
	in = f.commonInput(in, h.Key, stones, h.Owner, decimal(h.LastFence))
	in.args = append(in.args, h.Served...)
	return in
}

// LeaveRequest names owners to give up, wherever they are: in the queue or holding the key.
type LeaveRequest struct {
	Key     string
	InDoubt []string // these leave a tombstone
	Others  []string
}

// Leave gives up owners. It may be repeated; for grants see Release.
func (f *Fair) Leave(ctx context.Context, l LeaveRequest) (FairReply, error) {
	return parsePassed(f.redis.run(ctx, fairLeave, f.leaveInput(forOne(), l)))
}

// LeaveEach does what Leave does for each of asks by itself, and fills results, one for each. Each names
// as many owners, and as many of them in doubt, at most four, as the others.
func (f *Fair) LeaveEach(ctx context.Context, asks []LeaveRequest, results []Result[FairReply]) error {
	return runEach(ctx, f.redis, fairLeave, asks, f.leaveInput, results, parsePassed)
}

func (f *Fair) leaveInput(in input, l LeaveRequest) input {
	in = f.commonInput(in, l.Key, l.InDoubt, l.InDoubt...)
	in.args = append(in.args, l.Others...)
	return in
}

// Confirm sets the lease of an owner that was granted a key to a.Lease from now, and its label if there is
// one. Its fence numbers are those of the grant, as far as it is known and they are still good, or a new one.
// OK is false if the owner does not hold the key. It may be repeated, and may get a larger number then.
func (f *Fair) Confirm(ctx context.Context, a AcquireRequest, g Grant) (AcquireReply, error) {
	in := f.commonInput(forOne(), a.Key, nil, a.Owner, millis(a.Lease), decimal(g.Fence), decimal(g.FenceEnd))
	if a.Label != nil {
		in.args = append(in.args, f.redis.firstEntry(a.Label))
	}
	return f.redis.runAcquire(ctx, parseConfirmed, fairConfirm, in)
}

// ForceRelease frees key from any holder, and gives it to the next waiter; see
// [Redis.ForceRelease].
func (f *Fair) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	return parseBool(f.redis.run(ctx, fairForceRelease, f.commonInput(forOne(), key, nil)))
}

// Waiter is an owner in the queue of a key.
type Waiter struct {
	Owner string
	Alive bool   // its client has sent a heartbeat in time, as Java never does
	Label string // of its client; "" if it has none
}

// Queue returns the waiters of key, in order, the dead included.
func (f *Fair) Queue(ctx context.Context, key string) ([]Waiter, error) {
	reply := fieldsOf(f.redis.invoke(ctx, fairQueue, 2, queue(key), names.Of(names.HeartbeatsPrefix, key)))
	waiters := make([]Waiter, 0, len(reply.rest)/3)
	for reply.more() {
		waiters = append(waiters, Waiter{reply.text(), reply.integer(0, 1) == 1, reply.text()})
	}
	return result(reply, waiters)
}

// Inbox returns the channel on which a client receives its grants of key, whose name scripts make
// from that of the queue, or on which Java wakes an owner.
func Inbox(key, of string) string { return scripts.Channel(key) + ":" + of }
