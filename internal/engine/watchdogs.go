package engine

import (
	"sync"

	"github.com/holdfast-go/holdfast/watchdog"
)

// watchdogs are an engine's: one for each server that has had keys, so that renewals on a
// server that hangs hold up no others. A hold stays with its watchdog when its key moves.
type watchdogs struct {
	config watchdog.Config[*Hold]    // immutable
	first  *watchdog.Watchdog[*Hold] // of keys whose server is not known, or the only one; immutable
	mu     sync.Mutex
	others map[string]*watchdog.Watchdog[*Hold] // by server; guarded by mu
	closed bool                                 // guarded by mu
}

func newWatchdogs(config watchdog.Config[*Hold]) watchdogs {
	return watchdogs{config: config, first: watchdog.New(config), others: make(map[string]*watchdog.Watchdog[*Hold])}
}

func (ws *watchdogs) of(server string) *watchdog.Watchdog[*Hold] {
	if server == "" {
		return ws.first
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return ws.first
	}
	if ws.others[server] == nil {
		ws.others[server] = watchdog.New(ws.config)
	}
	return ws.others[server]
}

func (ws *watchdogs) close() {
	ws.mu.Lock()
	ws.closed = true
	others := ws.others
	ws.mu.Unlock()
	ws.first.Close()
	for _, other := range others {
		other.Close()
	}
}
