package main

import (
	"io"
	"net"
	"sync"
	"time"
)

// delay puts a proxy before the server at addr that adds d to every round trip: it holds back
// what the server sends. It keeps the order and does not lower the throughput, and several
// proxies do not delay each other. end waits until the clients have closed their connections.
func delay(addr string, d time.Duration) (proxy string, end func()) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { forward(client, addr, d) })
		}
	})
	return l.Addr().String(), func() {
		_ = l.Close() // nothing else closes it
		all.Wait()
	}
}

// parcel is bytes on their way.
type parcel struct {
	bytes []byte
	due   time.Time
}

// forward connects a client with the server at addr until one of them closes the connection.
func forward(client net.Conn, addr string, d time.Duration) {
	var readers sync.WaitGroup
	defer readers.Wait()
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	clock, err := newAlarm()
	if err != nil {
		return
	}
	defer clock.close()
	readers.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // ends the other reader
	})
	road := make(chan parcel, 4096)
	readers.Go(func() {
		defer close(road)
		for {
			buffer := make([]byte, 4096)
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			road <- parcel{buffer[:n], time.Now().Add(d)}
		}
	})
	for parcel := range road {
		clock.sleep(time.Until(parcel.due))
		_, _ = client.Write(parcel.bytes) // after an error, the rest is dropped
	}
}
