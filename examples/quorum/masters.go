package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

const (
	embedded     = "embedded servers"
	nodes        = 5
	startTimeout = time.Minute // for a server to listen; 30 ms are usual
)

// master is one of the five: a redis-server that keeps nothing on disk, in a process of its own, or an embedded server.
type master struct {
	number   int // from 1
	port     int
	kill     func()               // returns when the server is gone
	embedded *miniredis.Miniredis // nil: a redis-server
}

func (m *master) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port)) }

// serve is a process that runs one redis-server until ctx ends.
func serve(ctx context.Context, number int) error {
	return exec.CommandContext(ctx, *server, "--port", strconv.Itoa(*port+number-1), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", os.TempDir()).Run()
}

// startMasters starts five of a kind. After an error, all are those that run.
func startMasters(of string) (all []*master, err error) {
	for *port == 0 {
		*port = freePorts()
	}
	for i := range nodes {
		m := &master{number: i + 1, port: *port + i}
		if of == embedded {
			m.embedded = miniredis.NewMiniRedis()
		}
		if err := m.start(); err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

func stopMasters(all []*master) {
	for _, m := range all {
		m.kill()
	}
}

// freePorts returns the first of five ports that are free, or 0. They lie below the range for outgoing connections,
// where a client that dials a master that is away may connect to itself.
func freePorts() (first int) {
	first = 10000 + nodes*rand.IntN(400)
	for i := range nodes {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+i))
		if err != nil {
			return 0
		}
		l.Close()
	}
	return first
}

// start returns when the server listens. It has forgotten everything, except that an embedded one with -guard has not.
func (m *master) start() error {
	if m.embedded != nil {
		m.kill = func() {
			m.embedded.Close()
			if !*guard {
				m.embedded.FlushAll()
			}
		}
		return demo.StartEmbedded(m.embedded, m.addr())
	}
	ctx, cancel := context.WithCancel(context.Background())
	g, running := demo.NewGroup(ctx)
	g.Go(func() error { return demo.Run(running, m.number, "-port", strconv.Itoa(*port)) })
	m.kill = func() {
		cancel()
		_ = g.Wait()
	}
	limited, done := context.WithTimeout(running, startTimeout)
	defer done()
	if err := demo.Until(limited, 1, m.listening); err != nil {
		m.kill()
		return fmt.Errorf("master %d did not start: %w", m.number, err)
	}
	return nil
}

// listening returns 1 if the server listens, and else 0.
func (m *master) listening(context.Context) (int, error) {
	c, err := net.Dial("tcp", m.addr())
	if err != nil {
		return 0, nil
	}
	return 1, c.Close()
}

// silence keeps the connections open, but answers no call for d.
func (m *master) silence(client rueidis.Client, d time.Duration) error {
	if m.embedded != nil {
		m.embedded.Lock()
		defer m.embedded.Unlock()
	} else if err := client.Do(context.Background(), client.B().ClientPause().Timeout(d.Milliseconds()).All().Build()).Error(); err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// disturb causes faults, turn after turn, until ctx ends. All masters are up when it returns. A turn kills one master
// and silences another. Without the guard, it restarts a majority when a long section has begun.
func disturb(ctx context.Context, all []*master, clients []rueidis.Client, long <-chan struct{}) (turns int, err error) {
	rest := *lease * 5 / 4 // enough for all to have their vote again, and for no lease to lose masters to two turns
	if !*guard {
		rest = *lease / 2
	}
	for ; err == nil && demo.Sleep(ctx, rest) == nil; turns++ {
		g, _ := demo.NewGroup(context.Background())
		order, away := rand.Perm(nodes), *lease/2+rand.N(*lease)
		if *guard {
			g.Go(func() error { return all[order[0]].restart(away) })
			g.Go(func() error { return all[order[1]].silence(clients[order[1]], away) })
		} else {
			select {
			case <-long:
			case <-ctx.Done():
			}
			for _, i := range order[:nodes/2+1] {
				g.Go(func() error { return all[i].restart(0) })
			}
		}
		err = g.Wait()
	}
	return turns, err
}

// restart kills the master and starts it again after a while.
func (m *master) restart(away time.Duration) error {
	m.kill()
	time.Sleep(away)
	return m.start()
}
