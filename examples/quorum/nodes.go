package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	masters  = 5
	majority = 3
)

// server is a Redis server that listens at one address and persists nothing. One
// goroutine at a time may use it.
type server interface {
	// start returns when the server answers. It is empty.
	start() error
	// kill ends the server, paused or not, and returns when it is gone.
	kill()
	// pause lets connections and calls come, and answers none.
	pause()
	// resume ends a pause.
	resume()
}

// node is one of the masters.
type node struct {
	number int    // immutable; from 1
	addr   string // immutable
	server server // used by one fault at a time

	mu    sync.Mutex
	fault string // what was done to it last; "" if that is over; guarded by mu
}

// Ports lie below the ranges from which systems take the local ports of outgoing
// connections: there, whoever dials a node that is away may be connected to
// itself, or take the port that is to be opened again.
const lowest, highest = 10000, 12000

const (
	startTries   = 20               // ports tried before a node is given up
	startTimeout = 10 * time.Second // for a redis-server to listen; 11 ms are usual
)

var errSlow = fmt.Errorf("redis-server does not listen after %v", startTimeout)

// startNodes starts five servers. On failure none is left.
func startNodes(o options) (nodes []*node, err error) {
	for i := range masters {
		n := &node{number: i + 1}
		for range startTries {
			port := strconv.Itoa(lowest + rand.IntN(highest-lowest))
			n.addr = net.JoinHostPort("127.0.0.1", port)
			if o.embedded {
				n.server = &embedded{addr: n.addr, keeps: o.guard}
			} else {
				n.server = newProcess(o.redis, port)
			}
			if err = n.server.start(); err == nil || errors.Is(err, errSlow) {
				break
			}
		}
		if err != nil {
			stopNodes(nodes)
			return nil, fmt.Errorf("node %d cannot be started: %w", n.number, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func stopNodes(nodes []*node) {
	for _, n := range nodes {
		n.server.kill()
	}
}

// mark notes what is done to the node; "": nothing any more.
func (n *node) mark(fault string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = fault
}

func (n *node) marked() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fault
}
