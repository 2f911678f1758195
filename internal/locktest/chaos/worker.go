package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/exclusion"
)

func init() { RegisterChild("chaos", chaosWorker) }

// chaosWorker is exclusionWorker on several nodes. It does what it is told:
//
//	still  take no lock
//	go     take locks again
//	boot   the same, as a program that starts
//	drop   lose the connections to these nodes
//	stop   end
func chaosWorker(_ Kind, p *Parent) error {
	var orders orders
	if err := json.Unmarshal([]byte(p.Args[0]), &orders); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(orders.Seed, 0))
	open := make([]Sockets, len(orders.Nodes))
	var clients []rueidis.Client
	for i, addr := range orders.Nodes {
		client := patient(addr, &open[i])
		defer client.Close()
		clients = append(clients, client)
	}
	o := MastersOptions{
		Lease: chaosLease, Fencing: orders.How.Fencing, ClockFaults: orders.How.Faults,
		Unguarded: orders.How.Unguarded, NothingHeld: orders.How.NothingHeld,
	}
	if none := time.Duration(0); random.IntN(2) == 0 {
		o.Handover = &none
	}
	var all []holdfast.Locker
	var present atomic.Pointer[holdfast.Locker]
	boot := func() error {
		_ = Tested.Bootstrap(clients, o) // fails where too few nodes answer
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
	w, err := exclusion.NewWork(func() holdfast.Locker { return *present.Load() }, chaosErrand, orders.File, orders.Process)
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
				errs = append(errs, Close(l))
			}
			return errors.Join(errs...)
		}
	}
}

// patient is a client of a node that may not answer just now: it dials for the first
// time when it is used.
func patient(addr string, s *Sockets) rueidis.Client {
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
	e := exclusion.Errand{Key: exclusion.Key(3 + random.IntN(16)), Hold: upTo(random, 4*chaosLease)}
	switch random.IntN(8) {
	case 0, 1, 2:
		e.Fixed = (chaosLease - upTo(random, chaosLease/10)).Truncate(time.Millisecond)
	case 3:
		e.MaxHold = time.Millisecond + upTo(random, 2*chaosLease)
	}
	return e
}
