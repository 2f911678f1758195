package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/scripts"
)

// info returns a section of INFO.
func (s *server) info(section string) (map[string]string, error) {
	reply, err := s.do("INFO", section)
	if err != nil {
		return nil, err
	}
	text, err := reply.ToString()
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// calls is how often each command was executed, by its lower-case name.
type calls map[string]int

func (s *server) calls() (calls, error) {
	stats, err := s.info("commandstats")
	if err != nil {
		return nil, err
	}
	c := make(calls)
	for name, value := range stats {
		n, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if c[strings.TrimPrefix(name, "cmdstat_")], err = strconv.Atoi(n); err != nil {
			return nil, fmt.Errorf("INFO commandstats: %s: %w", name, err)
		}
	}
	return c, nil
}

// callsDuring returns what was executed while f ran.
func (s *server) callsDuring(f func() error) (calls, error) {
	before, err := s.calls()
	if err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	after, err := s.calls()
	for name, n := range before {
		after[name] -= n
	}
	return after, err
}

// within are the commands that the scripts of our subjects call, but for the INFO
// of the quorum's. INFO counts those, too; no subject of ours sends them by itself.
var within = slices.DeleteFunc(slices.Concat(scripts.Commands(), scripts.FairCommands(), scripts.QuorumCommands()), func(c string) bool {
	return strings.HasPrefix(c, "eval") || c == "script|load" || c == "info"
})

// sent is how many commands clients of ours sent, without the PINGs by which
// rueidis watches idle connections and without this program's own INFO.
func (c calls) sent() int { return c.without(within) }

// sentBy is the same for any library.
func (c calls) sentBy(library string) int {
	if inner, ok := inScripts[library]; ok {
		return c.without(inner)
	}
	return c.sent()
}

func (c calls) without(inner []string) int {
	n := 0
	for name, calls := range c {
		if name != "info" && name != "ping" && !slices.Contains(inner, name) {
			n += calls
		}
	}
	return n
}

// inner is how many commands scripts called.
func (c calls) inner() int {
	n := 0
	for name, calls := range c {
		if slices.Contains(within, name) {
			n += calls
		}
	}
	return n
}

// cpu is the processor time that the server has used, in seconds.
func (s *server) cpu() (float64, error) {
	used, err := s.info("cpu")
	if err != nil {
		return 0, err
	}
	user, err := strconv.ParseFloat(used["used_cpu_user"], 64)
	if err != nil {
		return 0, err
	}
	sys, err := strconv.ParseFloat(used["used_cpu_sys"], 64)
	return user + sys, err
}

// cpuDuring is the processor time that the server used while f ran, in seconds.
func (s *server) cpuDuring(f func() error) (float64, error) { return cpuDuring(s.cpu, f) }

func cpuDuring(cpu func() (float64, error), f func() error) (float64, error) {
	before, err := cpu()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := cpu()
	return after - before, err
}

// slowest is the execution time in µs from which on the server keeps calls in
// its slow log. Below it a call counts as this long.
const slowest = 500

// longestScript returns how long, in ms, the server was blocked by one script
// since the slow log was reset. Of scripts faster than slowest it knows nothing:
// that is the least it returns.
func (s *server) longestScript() (float64, error) {
	reply, err := s.do("SLOWLOG", "GET", "-1")
	if err != nil {
		return 0, err
	}
	entries, err := reply.ToArray()
	if err != nil {
		return 0, err
	}
	longest := int64(slowest)
	for _, e := range entries {
		parts, err := e.ToArray()
		if err != nil {
			return 0, err
		}
		took, err := parts[2].AsInt64()
		if err != nil {
			return 0, err
		}
		args, err := parts[3].AsStrSlice()
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(strings.ToLower(args[0]), "eval") {
			longest = max(longest, took)
		}
	}
	return float64(longest) / 1000, nil
}
