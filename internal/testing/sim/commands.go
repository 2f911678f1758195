package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// phase is that of a client's connection.
type phase int

const (
	calls      phase = iota
	subscribed       // as it gets messages
	killed           // by CLIENT KILL; it is closed when its next command comes, which is not carried out
)

// hook sees each command, those of scripts included, and reports whether it has answered it.
func (s *Server) hook(c *server.Peer, cmd string, args ...string) bool {
	s.mu.Lock()
	ahead, refusal, boots, policy, dead := s.ahead, s.refusal, s.boots, s.policy, s.clients[c] == killed
	s.mu.Unlock()
	if dead {
		return true
	}
	switch cmd {
	case "INFO": // what the locks ask for; miniredis has no run id
		c.WriteBulk(fmt.Sprintf("# Server\r\nredis_version:7.2.4\r\nrun_id:%s\r\n# Memory\r\nmaxmemory_policy:%s\r\n"+
			"# Replication\r\nrole:master\r\nmaster_replid:%s\r\n# Commandstats\r\ncmdstat_evalsha:calls=%d,\r\n",
			s.id(2*boots), policy, s.id(2*boots+1), s.script.calls.Load()))
		return true
	case "TIME":
		now := time.Now().Add(ahead).UnixMicro()
		c.WriteLen(2)
		c.WriteBulk(fmt.Sprint(now / 1e6))
		c.WriteBulk(fmt.Sprint(now % 1e6))
		return true
	case "CLIENT":
		return s.client(c, args)
	case "HELLO": // with which a client begins
		s.enter(c, calls)
		return false
	case "SUBSCRIBE":
		s.enter(c, subscribed)
		return false
	case "CONFIG":
		return s.config(c, strings.ToUpper(strings.Join(args, " ")))
	case "DUMP":
		c.WriteBulk(s.dump(args[0]))
		return true
	case "SCRIPT":
		s.script.script(c, args)
		return true
	case "EVAL", "EVALSHA":
		if refusal != "" {
			c.WriteError(refusal)
			return true
		}
		if s.closed.Load() {
			return true
		}
		return s.script.run(s.on, c, append([]string{cmd}, args...))
	}
	return s.script.refused(c, cmd)
}

func (s *Server) enter(c *server.Peer, now phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.clients[c]; !known {
		c.OnDisconnect(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.clients, c)
		})
	}
	s.clients[c] = now
}

// client is CLIENT LIST with a line for each connection, CLIENT KILL TYPE pubsub, and CLIENT KILL
// TYPE normal SKIPME yes.
func (s *Server) client(c *server.Peer, args []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kill := func(in phase) {
		n := 0
		for p, now := range s.clients {
			if p != c && now == in {
				s.clients[p] = killed
				go p.Close() // it may be writing
				n++
			}
		}
		c.WriteInt(n)
	}
	switch strings.ToUpper(strings.Join(args, " ")) {
	case "LIST":
		c.WriteBulk(strings.Repeat("id=1\n", len(s.conns)))
	case "KILL TYPE PUBSUB":
		kill(subscribed)
	case "KILL TYPE NORMAL SKIPME YES":
		kill(calls)
	default:
		return false
	}
	return true
}

// config is CONFIG RESETSTAT for the calls of scripts, CONFIG SET maxmemory, by which the server
// is full or not, and CONFIG SET maxmemory-policy, which it reports and does not follow.
func (s *Server) config(c *server.Peer, what string) bool {
	if what == "RESETSTAT" {
		s.script.calls.Store(0)
	} else if limit, ok := strings.CutPrefix(what, "SET MAXMEMORY "); ok {
		s.OutOfMemory(limit != "0")
	} else if policy, ok := strings.CutPrefix(what, "SET MAXMEMORY-POLICY "); ok {
		s.mu.Lock()
		s.policy = strings.ToLower(policy)
		s.mu.Unlock()
	} else {
		return false
	}
	c.WriteOK()
	return true
}

// dump is a text of what a key has.
func (s *Server) dump(key string) string {
	all, r := []string{s.redis.Type(key)}, s.redis
	switch all[0] {
	case "hash":
		fields, _ := r.HKeys(key)
		for _, f := range fields {
			all = append(all, f, r.HGet(key, f))
		}
	case "list":
		items, _ := r.List(key)
		all = append(all, items...)
	case "zset":
		scores := s.Scores(key)
		for _, m := range slices.Sorted(maps.Keys(scores)) {
			all = append(all, m, fmt.Sprint(scores[m]))
		}
	case "string":
		text, _ := r.Get(key)
		all = append(all, text)
	}
	return fmt.Sprintf("%q", all)
}

// Scores are those of the members of a sorted set.
func (s *Server) Scores(key string) map[string]float64 {
	all := map[string]float64{}
	members, _ := s.redis.ZMembers(key) // SortedSet returns the map that commands change
	for _, m := range members {
		if score, err := s.redis.ZScore(key, m); err == nil {
			all[m] = score
		}
	}
	return all
}

// id is one of 40 digits that no other server and no other boot has.
func (s *Server) id(n int) string {
	return (s.number + strings.Repeat("0", 40))[:34] + fmt.Sprintf("%06x", n)
}
