package main

import (
	"runtime"
	"syscall"
	"time"
)

// memory is what this process uses.
type memory struct {
	heap       int64 // bytes of living objects, after a collection
	stacks     int64 // bytes of stacks
	goroutines int
}

func memoryNow() memory {
	runtime.GC() // twice: what a sync.Pool keeps survives one
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()}
}

// added is what each of many brought with it.
type added struct{ heap, stack, goroutines float64 }

// since shares what was added among n.
func (m memory) since(before memory, n int) added {
	each := float64(n)
	return added{
		float64(m.heap-before.heap) / each,
		float64(m.stacks-before.stacks) / each,
		float64(m.goroutines-before.goroutines) / each,
	}
}

// allocated is how much this process has allocated so far.
func allocated() (objects, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}

// cpuNow is the processor time that this process has used, in seconds.
func cpuNow() (float64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), nil
}
