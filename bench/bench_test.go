package main

import (
	"sync/atomic"
	"testing"
)

// benchGoroutines is, for each processor, how many run at a time: 64 on two.
const benchGoroutines = 32

// BenchmarkUncontended is one cycle on a key of one's own.
func BenchmarkUncontended(b *testing.B) {
	for _, name := range []string{holdfastName, floorName, rueidisName} {
		b.Run(name, func(b *testing.B) { cycles(b, name, load{}) })
	}
}

// BenchmarkHot is one cycle on the key that all want.
func BenchmarkHot(b *testing.B) {
	for _, name := range []string{holdfastName, noHandoverName, rueidisName} {
		b.Run(name, func(b *testing.B) { cycles(b, name, load{hot: true}) })
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
