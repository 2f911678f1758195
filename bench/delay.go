package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// delayed is a server behind a proxy that adds a time to every round trip: it holds back what
// the server sends. It keeps the order and does not lower the throughput, and several proxies
// do not delay each other.
type delayed struct {
	target   string        // immutable
	trip     time.Duration // immutable
	listener net.Listener  // immutable
	work     sync.WaitGroup
}

// delay puts a proxy before the server at addr.
func delay(addr string, trip time.Duration) (*delayed, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &delayed{target: addr, trip: trip, listener: l}
	p.work.Go(p.accept)
	return p, nil
}

func (p *delayed) addr() string { return p.listener.Addr().String() }

// close waits for the connections, which the clients must have closed.
func (p *delayed) close() {
	_ = p.listener.Close() // nothing else closes it
	p.work.Wait()
}

func (p *delayed) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() {
			defer client.Close()
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer server.Close()
			p.work.Go(func() { p.reply(server, client) })
			_, _ = io.Copy(server, client) // until one of them closes
		})
	}
}

// parcel is bytes on their way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// reply forwards what the server sends, and the end of its connection.
func (p *delayed) reply(server io.Reader, client io.WriteCloser) {
	defer client.Close() //nolint:errcheck // the other direction may have closed it
	clock, err := newAlarm()
	if err != nil {
		return
	}
	defer clock.close()
	road := make(chan parcel, 4096)
	p.work.Go(func() {
		defer close(road)
		for {
			buffer := make([]byte, 4096)
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			road <- parcel{buffer[:n], time.Now().Add(p.trip)}
		}
	})
	for parcel := range road {
		clock.sleep(time.Until(parcel.due))
		_, _ = client.Write(parcel.bytes) // after an error, the rest is dropped
	}
}
