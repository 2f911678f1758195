package sim

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2/server"
)

// scripting runs the scripts of a server, one after the other, and can be out of memory.
type scripting struct {
	mu      sync.Mutex
	full    bool                        // guarded by mu
	running atomic.Pointer[server.Peer] // whose script runs; nil: none does
	wrote   atomic.Bool                 // that script has changed something
}

func (s *scripting) outOfMemory(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = on
}

// wrapped is how miniredis wraps the error of a command in a script; Redis does not.
var wrapped = regexp.MustCompile(`-(?:ERR )?Error compiling script[^\r\n]*?: (OOM [^\r\n]*?) stack traceback[^\r\n]*\r\n`)

// run runs a script, and returns true. Where it is the hook's call for a script that runs
// already, it returns false, so that the server carries it out.
func (s *scripting) run(on *server.Server, c *server.Peer, cmd []string) bool {
	if c == s.running.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	peer := server.NewPeer(w)
	peer.Ctx, peer.Resp3 = c.Ctx, c.Resp3
	s.wrote.Store(false)
	s.running.Store(peer)
	on.Dispatch(peer, cmd)
	s.running.Store(nil)
	_ = w.Flush()
	c.WriteRaw(string(wrapped.ReplaceAll(reply.Bytes(), []byte("-$1\r\n"))))
	return true
}

// refused answers a command of a script that needs memory, if there is none: the first, as
// Redis lets scripts go on that have changed something.
func (s *scripting) refused(c *server.Peer, cmd string) bool {
	if s.running.Load() == nil {
		return false
	}
	switch cmd {
	case "HDEL", "DEL", "LPOP", "LREM", "ZREM":
		s.wrote.Store(true)
	case "HSET", "HINCRBY", "SET", "RPUSH", "ZADD":
		if s.full && !s.wrote.Load() {
			c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
			return true
		}
		s.wrote.Store(true)
	}
	return false
}

func discard() *server.Peer { return server.NewPeer(bufio.NewWriter(io.Discard)) }
