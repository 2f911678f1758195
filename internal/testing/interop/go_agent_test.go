package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
)

const (
	goAgentEnv     = "HOLDFAST_INTEROP_AGENT" // in a Go agent: the addresses of Redis
	goAgentOptions = "HOLDFAST_INTEROP_OPTIONS"
)

// runGoAgent is called first in TestMain. In a Go agent it carries out commands
// until its input ends, and ends the process; else it does nothing.
func runGoAgent() {
	addrs := os.Getenv(goAgentEnv)
	if addrs == "" {
		return
	}
	if err := goAgentMain(addrs, os.Getenv(goAgentOptions)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func goAgentMain(addrs, opts string) error {
	var o options
	if err := json.Unmarshal([]byte(opts), &o); err != nil {
		return err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: strings.Split(addrs, ","), DisableCache: true})
	if err != nil {
		return err
	}
	kinds, err := openKinds(client, o)
	if err != nil {
		return err
	}
	g := &goAgent{kinds: kinds, threads: map[string]*thread{}}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var c command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return err
		}
		g.take(c)
	}
	return nil
}

// goAgent is the Go side's Agent.java.
type goAgent struct {
	kinds   map[string]locktest.Locker // by kind
	threads map[string]*thread         // the reading goroutine's own
	stopped atomic.Bool                // the work has to end
	out     sync.Mutex                 // of standard output

	opened   sync.Once
	recorder *exclusion.Recorder // of the work; immutable once opened
	openErr  error               // likewise
}

// take hands a command to its thread.
func (g *goAgent) take(c command) {
	switch c.Op {
	case "ping":
		g.say(done(c, true, 0, ""))
		return
	case "stop":
		g.stopped.Store(true)
		g.say(done(c, true, 0, ""))
		return
	}
	th := g.threads[c.Thread]
	if th == nil {
		th = &thread{commands: make(chan command, 16), held: map[string][]*holdfast.Lease{}}
		th.renew()
		g.threads[c.Thread] = th
		go func() { // ends with the process
			for c := range th.commands {
				g.say(g.carryOut(th, c))
			}
		}()
	}
	if c.Op == "interrupt" {
		th.interrupt()
		g.say(done(c, true, 0, ""))
		return
	}
	th.commands <- c
}

func (g *goAgent) say(a answer) {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // of plain data
	}
	g.out.Lock()
	defer g.out.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n')) // the parent may be gone
}

func done(c command, ok bool, number int64, text string) answer {
	return answer{ID: c.ID, OK: ok, Number: number, Text: text, Time: int64(locktest.Clock())}
}

func failed(c command, err error) answer {
	a := done(c, false, 0, "")
	switch {
	case errors.Is(err, holdfast.ErrLost):
		a.Error = notOwner
	case errors.Is(err, context.Canceled):
		a.Error = interrupted
	default:
		a.Error = err.Error()
	}
	return a
}

// thread is what an owner is in Java: a goroutine that remembers its leases.
type thread struct {
	commands chan command
	held     map[string][]*holdfast.Lease // by kind and key, innermost last; the goroutine's own

	mu     sync.Mutex
	ctx    context.Context    // of the present call; guarded by mu
	cancel context.CancelFunc // guarded by mu
}

func (th *thread) renew() context.Context {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.ctx, th.cancel = context.WithCancel(context.Background())
	return th.ctx
}

func (th *thread) interrupt() {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.cancel()
}

func (g *goAgent) carryOut(th *thread, c command) answer {
	ctx := th.renew()
	if c.Op == "work" {
		return g.work(c)
	}
	locker, ok := g.kinds[c.Kind]
	if !ok {
		return failed(c, fmt.Errorf("kind %q", c.Kind))
	}
	at := c.Kind + " " + c.Key
	held := th.held[at]
	switch c.Op {
	case "lock", "tryLock":
		bound := ctx
		if len(held) > 0 {
			bound = held[len(held)-1].Bind(ctx)
		}
		l, err := acquire(bound, locker, c)
		if errors.Is(err, holdfast.ErrNotAcquired) && ctx.Err() == nil {
			return done(c, false, 0, "")
		}
		if err != nil {
			return failed(c, err)
		}
		th.held[at] = append(held, l)
		return done(c, true, l.Fence(), l.Owner())
	case "unlock":
		if len(held) == 0 {
			return failed(c, holdfast.ErrLost)
		}
		th.held[at] = held[:len(held)-1]
		if err := held[len(held)-1].Unlock(context.Background()); err != nil {
			return failed(c, err)
		}
		return done(c, true, 0, "")
	case "held":
		if len(held) == 0 || held[0].Err() != nil {
			return done(c, false, 0, "")
		}
		return done(c, true, int64(len(held)), held[0].Owner())
	}
	return administer(ctx, locker, c)
}

// milliseconds of a command; 0 if they were left out.
func milliseconds(ms *int64) time.Duration {
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
}
