package main

import (
	"github.com/alicebob/miniredis/v2"
	redis "github.com/alicebob/miniredis/v2/server"
)

// embedded is a server in this program. It listens on TCP, so that a restart
// costs connections as a real one does.
type embedded struct {
	addr   string // immutable
	keeps  bool   // its memory over a restart; immutable
	server *miniredis.Miniredis
	paused chan struct{} // closed by resume; nil while it is not paused
}

func (e *embedded) start() error {
	if e.server == nil || !e.keeps {
		e.server = miniredis.NewMiniRedis()
		e.server.ClockTTL(true) // else no lease would ever end
	}
	return e.server.StartAddr(e.addr)
}

func (e *embedded) kill() {
	e.resume() // whom Close waits for
	e.server.Close()
}

func (e *embedded) pause() {
	paused := make(chan struct{})
	e.paused = paused
	e.server.Server().SetPreHook(func(*redis.Peer, string, ...string) bool {
		<-paused
		return false
	})
}

func (e *embedded) resume() {
	if e.paused == nil {
		return
	}
	e.server.Server().SetPreHook(nil)
	close(e.paused)
	e.paused = nil
}
