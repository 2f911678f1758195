package main

import (
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// store is one server that keeps locks, or several: Redis, or what a rival has instead.
type store interface {
	addrs() []string
	// during runs f, and returns what the store did meanwhile.
	during(f func()) spent
}

// spent is what a store did.
type spent struct {
	calls   map[string]int // how often each command was executed, by its lower-case name; nil if the store does not say
	cpu     float64        // processor time, in seconds
	longest float64        // the longest time for which a script blocked a server, in ms
}

// notSent are what this program asks, the PINGs by which rueidis watches idle connections, and
// the answers of replicas.
var notSent = []string{"info", "config|resetstat", "ping", "replconf"}

// sent returns how many commands the clients of a library sent.
func (s spent) sent(library string) (n int) {
	for name, calls := range s.calls {
		if !slices.Contains(notSent, name) && !slices.Contains(libraries[library].inner, name) {
			n += calls
		}
	}
	return n
}

// options returns the options of every client but rueidislock's, which needs the cache.
func options(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
}

// infoOf returns what a server says of itself.
func infoOf(s *redistest.Server) string {
	m := must(s.TryDo("INFO", "server", "cpu", "commandstats", "latencystats"))
	return must(m.ToString())
}

// cpuIn returns the processor time that a server has used, in seconds.
func cpuIn(info string) float64 {
	return number(info, `used_cpu_user:(\S+)`) + number(info, `used_cpu_sys:(\S+)`)
}

// number returns the first group of a pattern in a text; 0 if there is none.
func number(text, pattern string) float64 {
	n, _ := strconv.ParseFloat(found(pattern)([]byte(text), nil), 64)
	return n
}
