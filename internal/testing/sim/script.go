package sim

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2/server"
)

// scripting knows the scripts of a server, runs them one after the other, and can be out of
// memory.
type scripting struct {
	known   sync.Map // texts by their SHA-1
	calls   atomic.Int64
	mu      sync.Mutex                  // for one script after the other
	full    atomic.Bool                 // out of memory
	running atomic.Pointer[server.Peer] // whose script runs; nil: none does
	wrote   atomic.Bool                 // that script has changed something
}

// wrapped is how miniredis wraps the error of a command in a script, and caught where the script
// returns it in its reply; Redis does not.
var (
	wrapped = regexp.MustCompile(`-(?:ERR )?Error compiling script[^\r\n]*?: ((?:OOM|WRONGTYPE) [^\r\n]*?) stack traceback[^\r\n]*\r\n`)
	caught  = regexp.MustCompile(`\$\d+\r\n:\d+: ((?:OOM|WRONGTYPE) [^\r\n]*)\r\n`)
)

// bare is a reply with the errors of Redis.
func bare(reply []byte) string {
	reply = wrapped.ReplaceAll(reply, []byte("-$1\r\n"))
	return string(caught.ReplaceAllFunc(reply, func(bulk []byte) []byte {
		text := caught.FindSubmatch(bulk)[1]
		return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text)
	}))
}

// run runs a script, and returns true. Where it is the hook's call for a script that runs
// already, it returns false, so that the server carries it out.
func (s *scripting) run(on *server.Server, c *server.Peer, cmd []string) bool {
	if c == s.running.Load() {
		return false
	}
	if cmd[0] == "EVALSHA" {
		text, known := s.known.Load(strings.ToLower(cmd[1]))
		if !known {
			c.WriteError("NOSCRIPT No matching script. Please use EVAL.")
			return true
		}
		cmd = append([]string{"EVAL", text.(string)}, cmd[2:]...)
	}
	s.load(cmd[1])
	s.calls.Add(1)
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
	c.WriteRaw(bare(reply.Bytes()))
	return true
}

// script is the command of that name. The embedded server would parse each text.
func (s *scripting) script(c *server.Peer, args []string) {
	switch strings.ToUpper(args[0]) {
	case "LOAD":
		c.WriteBulk(s.load(args[1]))
	case "EXISTS":
		c.WriteLen(len(args) - 1)
		for _, sha := range args[1:] {
			n := 0
			if _, known := s.known.Load(strings.ToLower(sha)); known {
				n = 1
			}
			c.WriteInt(n)
		}
	case "FLUSH":
		s.known.Clear()
		c.WriteOK()
	default:
		c.WriteError("ERR unknown subcommand")
	}
}

// load notes a script, and returns its SHA-1.
func (s *scripting) load(text string) string {
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	s.known.Store(sha, text)
	return sha
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
		if s.full.Load() && !s.wrote.Load() {
			c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
			return true
		}
		s.wrote.Store(true)
	}
	return false
}
