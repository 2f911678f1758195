package calls

import "sync"

// Tasks is work in the background, and calls, that somebody waits for in the end. Its zero value is
// ready. A task that begins another one may use Add and Go of the WaitGroup. Safe for concurrent use.
type Tasks struct {
	sync.WaitGroup
	mu   sync.RWMutex
	shut bool // guarded by mu
}

// TryBegin notes a task, until Done. After Shut, it does nothing and returns false.
func (t *Tasks) TryBegin() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.shut {
		t.Add(1)
	}
	return !t.shut
}

// TryGo runs f as a task. After Shut, it does nothing and returns false.
func (t *Tasks) TryGo(f func()) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.shut {
		t.Go(f)
	}
	return !t.shut
}

// Shut waits for the tasks.
func (t *Tasks) Shut() {
	t.mu.Lock()
	t.shut = true
	t.mu.Unlock()
	t.Wait()
}
