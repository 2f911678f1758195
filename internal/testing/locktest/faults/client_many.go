package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F10_TenThousandWaiters", func(t *testing.T, k locktest.Kind) { testCrowd(t, k, 1, 10_000, 50) }, ofOneHolder|alone)
	register("F10_ManyProcesses", func(t *testing.T, k locktest.Kind) { testCrowd(t, k, 50, 200, 10) }, ofOneHolder|alone)
	register("F10_BoundContextsDoNotPileUp", testManyBound, alone)
	register("F10_CallersGiveUpWhileRedisHangs", testCallersGiveUp, alone)
}

// crowded makes calls of Lock until n of them wait in l, which allows so many
// waiters and no more. The channel tells of each that is served, in its turn: the
// next comes when it was unlocked.
func crowded(ctx context.Context, l locktest.Locker, key string, n int) <-chan locktest.Acquired {
	served := make(chan locktest.Acquired)
	full := make(chan struct{}, 1)
	var all sync.WaitGroup
	for range n + 2 { // the first attempt is no waiter yet, and one must be refused
		all.Go(func() {
			time.Sleep(rand.N(30 * time.Millisecond)) // so that some come while a call for others is under way
			lease, err := l.Lock(ctx, key)
			if errors.Is(err, holdfast.ErrTooManyWaiters) {
				loop.Poke(full)
				return
			}
			served <- locktest.Acquired{Lease: lease, Err: err}
		})
	}
	<-full
	go func() {
		all.Wait()
		close(served)
	}()
	return served
}

var clientID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// attempts counts the calls by which waiters try again, or enter the queue, and the
// most that one client had under way at once. Of several nodes it is what most of
// them saw at least: an attempt is over when a quorum has answered, and the next may
// overtake what the others still have to answer.
type attempts struct {
	mu     sync.Mutex
	sent   []int            // by node; guarded by mu
	flying map[string][]int // by the client's uuid and by node; guarded by mu
	most   int              // guarded by mu
}

func watchAttempts(r *harness) *attempts {
	a := &attempts{sent: make([]int, len(r.Proxy.All)), flying: map[string][]int{}}
	count := func(node, n int) redistest.Hook {
		return func(cmd []string) redistest.Verdict {
			if locktest.Verb(cmd) == r.Kind.WaitVerb() {
				keys := locktest.Must(strconv.Atoi(cmd[2]))(r.T) // after the script; an owner comes behind
				client := clientID.FindString(strings.Join(cmd[3+keys:], " "))
				a.mu.Lock()
				defer a.mu.Unlock()
				if a.flying[client] == nil {
					a.flying[client] = make([]int, len(a.sent))
				}
				a.sent[node] += max(n, 0)
				a.flying[client][node] += n
				a.most = max(a.most, locktest.SeenByMost(a.flying[client]))
			}
			return redistest.Pass
		}
	}
	for i, p := range r.Proxy.All {
		p.OnRequest(count(i, 1))
		p.OnReply(count(i, -1))
	}
	return a
}

func (a *attempts) read() (sent, most, clients int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return locktest.SeenByMost(a.sent), a.most, len(a.flying)
}

// testCrowd has lockers, as processes have them, with so many waiters each for one key, of which some
// enter a queue by one call. Of each process, one attempt at most is under way at once, and few are
// made while all wait.
func testCrowd(t *testing.T, k locktest.Kind, processes, each, together int) {
	if processes > 1 {
		locktest.WithoutRace(t) // the detector has crashed with so many clients: "tsan_rtl.cpp: CHECK failed"
	}
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	ctx, cancel := context.WithTimeout(context.Background(), 5*locktest.Patience)
	defer cancel()
	before := locktest.Lock(t, r.Other, ctx, "k")
	a := watchAttempts(r)
	r.Proxy.SetDelay(time.Millisecond, time.Millisecond) // else no calls overlap in virtual time
	empty := memory()
	var crowds []<-chan locktest.Acquired
	began := time.Now()
	for range processes {
		client := r.Server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{r.Proxy.Addr()} })
		crowds = append(crowds, crowded(ctx, k.Open(t, client, locktest.Options{Lease: locktest.Long, MaxWaiters: each}), "k", each))
	}
	if processes == 1 { // clients take more
		require.Less(t, (memory()-empty)/each, 16<<10, "bytes for each waiter, its goroutine's stack included")
	}
	r.AwaitWaiters("k", processes)
	if k.Virtual {
		time.Sleep(10 * time.Second) // in which polls would show
	}
	sent, _, clients := a.read()
	require.Equal(t, processes, clients)
	few := (1 + k.MaxProbes()) * processes // one subscription may take so long that there is a probe meanwhile
	if k.Fair {
		few = each / together * processes
	}
	const firstAttempts = 256 // of a semaphore, up to 50 of them in a call
	if k.Permits {
		few += firstAttempts * processes
	}
	if k.ReadWrite || !k.Virtual { // a process says each second that it waits, or asks until it has subscribed
		few += int(1+time.Since(began)/time.Second) * processes
	}
	require.LessOrEqual(t, sent, few, "attempts while all waited")
	require.NoError(t, before.Unlock(ctx))
	var all sync.WaitGroup
	for _, crowd := range crowds {
		all.Go(func() {
			for a := range crowd {
				require.NoError(t, a.Err)
				require.NoError(t, a.Lease.Unlock(ctx))
			}
		})
	}
	all.Wait()
	_, most, _ := a.read()
	if k.Permits {
		require.LessOrEqual(t, most, firstAttempts+1, "attempts of one process at once")
	} else {
		require.Equal(t, 1, most, "attempts of one process at once")
	}
	r.Tidy("k")
}

// memory is what heap and stacks take now.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

type boundKey struct{}

// A lease that lives for long is bound ever again, to contexts that do not end before
// it: nothing of that stays.
func testManyBound(t *testing.T, k locktest.Kind) {
	const times = 50_000
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	l := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	service, stop := context.WithCancel(context.Background())
	defer stop()
	before := memory()
	for i := range times {
		for _, parent := range []context.Context{context.Background(), service} {
			_ = l.Bind(parent)
			_ = l.Bind(context.WithValue(parent, boundKey{}, i))
		}
	}
	require.Less(t, (memory()-before)/(4*times), 8, "bytes that stay of each")
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
}

// Callers with short time give up, and come again with other keys, while Redis hangs.
// Neither goroutines nor what is left to be undone grow with the number of their calls.
// When Redis goes on, all of it is undone and locks are had again.
func testCallersGiveUp(t *testing.T, k locktest.Kind) {
	const callers, times = 50, 40
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long})
	require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "warm"))
	before := runtime.NumGoroutine()
	r.Server.Pause()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range times {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				require.ErrorIs(t, locktest.ErrOf(r.Locker.Lock(ctx, fmt.Sprint("k", i, "-", n))), context.DeadlineExceeded)
				cancel()
			}
		})
	}
	all.Wait()
	time.Sleep(10 * time.Millisecond)    // what is about to end has ended
	few := 3 * callers * max(1, k.Nodes) // attempts that wait to be undone, and each caller's last call
	if !k.Virtual {
		few *= 2 // some end late
	}
	require.Less(t, runtime.NumGoroutine()-before, few, "goroutines after %d calls", callers*times)
	r.Server.Resume()
	undone := map[string]bool{}
	locktest.Await(t, func() bool { // tombstones stay for a while
		held := false
		for _, key := range r.Keys() {
			stone := strings.HasPrefix(key, "holdfast_gone:")
			held = held || !stone && strings.HasPrefix(key, "k")
			if stone {
				undone[key] = true
			}
		}
		return !held && (len(undone) > 0 || k.Nodes > 0) // where nodes keep their order, undoing leaves none
	})
	require.Less(t, len(undone), callers*times/4, "tombstones")
	require.NoError(t, locktest.Cycle(r.Locker, locktest.Bounded(t), "k0-0"))
	r.Traceless("k0-0")
}
