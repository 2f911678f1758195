package main

import (
	"net"
	"sync"
	"time"
)

// delayed is a server behind a proxy that adds a time to every round trip, half of
// it each way. Order is kept, throughput is not lowered, and several do not delay
// each other.
type delayed struct {
	target   string        // immutable
	way      time.Duration // of one direction; immutable
	listener net.Listener  // immutable
	work     sync.WaitGroup

	mu     sync.Mutex
	closed bool       // guarded by mu
	conns  []net.Conn // guarded by mu
}

// delay puts a proxy before the server at addr.
func delay(addr string, trip time.Duration) (*delayed, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &delayed{target: addr, way: trip / 2, listener: l}
	p.work.Go(p.accept)
	return p, nil
}

func (p *delayed) addr() string { return p.listener.Addr().String() }

// close cuts what is open and waits for the goroutines.
func (p *delayed) close() {
	_ = p.listener.Close() // it is not closed anywhere else
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		_ = c.Close() // perhaps a second time
	}
	p.mu.Unlock()
	p.work.Wait()
}

// open keeps connections for close; false after it.
func (p *delayed) open(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	if p.closed {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	return !p.closed
}

func (p *delayed) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close() // nobody is there
			continue
		}
		if !p.open(client, server) || !p.forward(client, server) || !p.forward(server, client) {
			_, _ = client.Close(), server.Close() // perhaps a second time
		}
	}
}

// parcel is bytes on their way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// forward carries what comes from one connection to the other, and its end; false
// where it cannot.
func (p *delayed) forward(from, to net.Conn) bool {
	clock, err := newAlarm()
	if err != nil {
		return false
	}
	road := make(chan parcel, 4096)
	p.work.Go(func() {
		defer close(road)
		for {
			buffer := make([]byte, 4096)
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			road <- parcel{buffer[:n], time.Now().Add(p.way)}
		}
	})
	p.work.Go(func() {
		defer clock.close()
		for parcel := range road {
			clock.sleep(time.Until(parcel.due))
			_, _ = to.Write(parcel.bytes) // if it is closed, what follows is swallowed
		}
		_ = to.Close() // perhaps a second time
	})
	return true
}
