package main

import (
	"sync/atomic"
	"testing"
)

// benchGoroutines is, for each processor, how many run at a time: 64 on two.
const benchGoroutines = 32

// BenchmarkUncontended is one cycle on a key of one's own.
func BenchmarkUncontended(b *testing.B) {
	for _, name := range []string{holdfastName, floorName, rueidisName, redsyncName, redislockName} {
		b.Run(name, func(b *testing.B) { cycles(b, name, load{}) })
	}
}

// BenchmarkHot is one cycle on the key that all want.
func BenchmarkHot(b *testing.B) {
	for _, name := range []string{holdfastName, noHandoverName, rueidisName, redsyncName, redislockName} {
		b.Run(name, func(b *testing.B) { cycles(b, name, load{hot: true}) })
	}
}

// BenchmarkQuorum is one cycle on a key of one's own, on five nodes.
func BenchmarkQuorum(b *testing.B) {
	for _, name := range []string{multilockName, redsyncName} {
		b.Run(name, func(b *testing.B) {
			needServer(b)
			all, err := startNodes(masters)
			if err != nil {
				b.Fatal(err)
			}
			defer all.stop()
			l, err := quorumLibraries[name](all.addrs(), usualLease)
			if err != nil {
				b.Fatal(err)
			}
			defer l.close()
			run(b, l, load{})
		})
	}
}

func cycles(b *testing.B, name string, w load) {
	needServer(b)
	s, err := startServer()
	if err != nil {
		b.Fatal(err)
	}
	defer s.stop()
	l, err := libraries[name](s.addr, usualLease)
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	run(b, l, w)
}

func run(b *testing.B, l locker, w load) {
	if err := l.cycle("warm")(func() {}); err != nil {
		b.Fatal(err)
	}
	var goroutine atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(benchGoroutines)
	b.ResetTimer()
	defer b.StopTimer()
	b.RunParallel(func(p *testing.PB) {
		cycle := l.cycle(w.key(int(goroutine.Add(1))))
		for p.Next() {
			if err := cycle(func() {}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
