package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() { locktest.RegisterChild("chaos", chaosWorker) }

// chaosWorker is exclusionWorker on several nodes. It does what it is told:
//
//	still  take no lock
//	go     take locks again
//	boot   the same, as a program that starts
//	drop   lose the connections to these nodes
//	stop   end
func chaosWorker(_ locktest.Kind, p *locktest.Parent) error {
	var orders orders
	if err := json.Unmarshal([]byte(p.Args[0]), &orders); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(orders.Seed, 0))
	open := make([]locktest.Sockets, len(orders.Nodes))
	var clients []rueidis.Client
	for i, addr := range orders.Nodes {
		client := patient(addr, &open[i])
		defer client.Close()
		clients = append(clients, client)
	}
	o := MastersOptions{
		Lease: chaosLease, Fencing: orders.How.Fencing, ClockFaults: orders.How.Faults,
		Unguarded: orders.How.Unguarded,
	}
	if none := time.Duration(0); random.IntN(2) == 0 {
		o.Handover = &none
	}
	var all []locktest.Locker
	var present atomic.Pointer[locktest.Locker]
	boot := func() error {
		if orders.How.NothingHeld {
			_ = Tested.NothingHeld(clients, o) // fails where a node does not answer
		}
		l, err := Tested.New(clients, o)
		if err == nil {
			all = append(all, l)
			present.Store(&l)
		}
		return err
	}
	if err := boot(); err != nil {
		return err
	}
	w, err := exclusion.NewWork(func(bool) holdfast.Locker { return *present.Load() }, chaosErrand, orders.File, orders.Process)
	if err != nil {
		return err
	}
	p.Say("ready")
	w.Begin(random)
	for {
		word, rest, _ := strings.Cut(p.Hear(), " ")
		switch word {
		case "still":
			w.Gate.Close()
			p.Say("still")
		case "go":
			w.Gate.Open(w.Ctx)
		case "boot":
			if err := boot(); err != nil {
				return err
			}
			w.Gate.Open(w.Ctx)
		case "drop":
			for _, node := range strings.Fields(rest) {
				i, err := strconv.Atoi(node)
				if err != nil {
					return err
				}
				open[i].Drop()
			}
		case "stop":
			errs := []error{w.End()}
			for _, l := range all {
				errs = append(errs, locktest.Close(l))
			}
			return errors.Join(errs...)
		}
	}
}

// patient is a client of a node that may not answer just now: it dials for the first
// time when it is used.
func patient(addr string, s *locktest.Sockets) rueidis.Client {
	o := rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true}
	s.Dialled(&o)
	var used atomic.Bool
	dial := o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		if !used.Swap(true) {
			return nil, errors.New("not used yet")
		}
		return dial(ctx, addr, d, c)
	}
	client, _ := rueidis.NewClient(o) // there is one although the dial has failed
	return client
}

// chaosErrand is a lease of a key that is held for mostly no time, or of one that is
// held for up to several leases.
func chaosErrand(random *rand.Rand, worker int) exclusion.Errand {
	if worker%4 == 0 {
		return exclusion.Errand{Key: exclusion.Key(random.IntN(3)), Hold: exclusion.HoldTime(random, chaosLease, 3)}
	}
	e := exclusion.Errand{Key: exclusion.Key(3 + random.IntN(16)), Hold: exclusion.UpTo(random, 4*chaosLease)}
	switch random.IntN(8) {
	case 0, 1, 2:
		e.Fixed = (chaosLease - exclusion.UpTo(random, chaosLease/10)).Truncate(time.Millisecond)
	case 3:
		e.MaxHold = time.Millisecond + exclusion.UpTo(random, 2*chaosLease)
	}
	return e
}

// victim is the place of one process of a run.
type victim struct {
	c       *chaos
	name    string             // of the place; its processes are name.1, name.2, …
	random  *rand.Rand         // of the goroutine that kills and pauses
	proxies []*redistest.Proxy // its ways to the nodes
	starts  int                // of that goroutine
	spoilt  atomic.Bool        // the ways are not all open

	mu    sync.Mutex // held while one process takes the place of another, and while it is spoken to
	child *locktest.Child
}

// orders are what a process is told when it starts.
type orders struct {
	How     Campaign
	Nodes   []string // their addresses
	File    string   // of records
	Process string
	Seed    uint64
}

func (v *victim) start() {
	v.starts++
	o := orders{How: v.c.how, File: v.c.file, Process: v.process(), Seed: v.random.Uint64()}
	for _, p := range v.proxies {
		o.Nodes = append(o.Nodes, p.Addr())
	}
	text := locktest.Must(json.Marshal(o))(v.c.t)
	v.child = locktest.StartChild(v.c.t, "chaos", string(text))
	v.child.Expect("ready")
}

func (v *victim) process() string { return v.name + "." + strconv.Itoa(v.starts) }

// restart kills the process and starts another.
func (v *victim) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.c.did("process killed", "%s", v.process())
	v.child.Kill()
	v.c.mu.Lock()
	v.c.died[v.process()] = locktest.Clock()
	v.c.mu.Unlock()
	v.start()
}

func (v *victim) say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.child.Say(line)
}

// drop has the process lose its connections to nodes.
func (v *victim) drop(nodes []int) {
	line := "drop"
	for _, node := range nodes {
		line += fmt.Sprintf(" %d", node)
	}
	v.say(line)
}
