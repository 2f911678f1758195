package engine

import (
	"sync"

	"github.com/holdfast-go/holdfast/watchdog"
)

// watchdogs are an engine's: one for each server that has keys, so that the renewals of one
// that hangs hold up no others. A hold stays with its watchdog when its key moves.
type watchdogs struct {
	config watchdog.Config[*Hold]    // immutable
	first  *watchdog.Watchdog[*Hold] // of keys whose server is not known, or the only one; immutable
	mu     sync.Mutex
	others map[string]*watchdog.Watchdog[*Hold] // by server; guarded by mu
	closed bool                                 // guarded by mu
}

func newWatchdogs(c watchdog.Config[*Hold]) watchdogs {
	return watchdogs{config: c, first: watchdog.New(c), others: make(map[string]*watchdog.Watchdog[*Hold])}
}

// of returns the watchdog of a server.
func (w *watchdogs) of(server string) *watchdog.Watchdog[*Hold] {
	if server == "" {
		return w.first
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.first
	}
	if w.others[server] == nil {
		w.others[server] = watchdog.New(w.config)
	}
	return w.others[server]
}

func (w *watchdogs) close() {
	w.mu.Lock()
	w.closed = true
	others := w.others
	w.mu.Unlock()
	w.first.Close()
	for _, other := range others {
		other.Close()
	}
}
