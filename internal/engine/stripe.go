package engine

import (
	"hash/maphash"
	"sync"
)

// Stripes is how many stripes the keys of an engine are in.
const Stripes = 64

// stripe guards a part of the keys and all their state. Its Unlock also notifies the
// listeners of the entries that ended while the mutex was held, and logs losses, so that no caller can forget to.
type stripe struct {
	engine  *Engine // immutable
	index   int     // among those of the engine; immutable
	mu      sync.Mutex
	keys    map[string]*Key // by name; guarded by mu
	closed  bool            // guarded by mu
	notices []notice        // guarded by mu
}

func (st *stripe) Lock() { st.mu.Lock() }

func (st *stripe) Unlock() {
	notices := st.notices
	st.notices = nil
	st.mu.Unlock()
	for _, n := range notices {
		if n.to != nil {
			n.to.notify(n.why)
		} else {
			st.engine.logLoss(n.hold, n.why)
		}
	}
}

func (e *Engine) stripeOf(name string) *stripe {
	return &e.stripes[maphash.String(e.seed, name)%uint64(len(e.stripes))]
}

// With runs f with the state of the key of a name, and holds its mutex meanwhile. k is nil if the key
// is neither held nor wanted here. Once Close has reached the key, With does nothing and returns false.
func (e *Engine) With(name string, f func(k *Key)) bool {
	st := e.stripeOf(name)
	st.Lock()
	defer st.Unlock()
	if !st.closed {
		f(st.keys[name])
	}
	return !st.closed
}

// notice says why an entry has ended, to listeners that have yet to learn of it; or why a hold was lost, to the log.
type notice struct {
	to   *listeners // nil: the log
	why  error
	hold *Hold
}

// listeners are told when an entry ends.
type listeners struct {
	done  chan struct{}                // nil until Done is called
	bound map[<-chan struct{}]*binding // by the Done channel of their parents; nil if there are none
}

func (l *listeners) notify(why error) {
	if l.done != nil {
		close(l.done)
	}
	for _, b := range l.bound {
		b.cancel(why)
	}
}
