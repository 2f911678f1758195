package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/bench/report"
)

// task is an order to a process of this program, or of the Java program in java, which does
// the same. Each has its own memory, so that it can be measured and killed.
type task struct {
	Addrs   []string // of independent servers, of a Redis Cluster, or of Sentinels
	Cluster bool
	Set     string // the name under which the Sentinels know the master
	Library string // for Java: the kind of lock
	Role    string // a key of roles
	Process int    // the place of this process
	Processes,
	Goroutines int // of each process
	Count    int           // of waiters or leases
	Hot      bool          // all want one key; else each goroutine has its own
	Shared   int           // of 100 cycles, how many may be inside with others of these
	Room     int64         // how many of these at once
	Try      bool          // all only try one key, which is held
	Election bool          // a cycle is a term
	Section  time.Duration // 0: empty
	Inside   string        // the file where processes count those inside; empty if there is one process
	Warm     time.Duration // how long to work before it is ready
	Lead     time.Duration // how long to work before what is measured
	Duration time.Duration // how long the work takes then, or takes at most
	Lease    time.Duration // where it is not the usual one
}

// job is the work of a process, ready to begin. rate is for jobs that have one.
type job func(rate float64) result

// roles are the kinds of work. Each prepares everything that must exist before the work is
// measured.
var roles = map[string]func(task) job{
	"load": prepareLoad, // locks and unlocks
	"wait": prepareWait, // has many goroutines wait for a key
	"keep": prepareKeep, // holds many keys
	"sale": prepareSale, // serves a flash sale
	"hold": prepareHold, // holds a key until it is killed or told to unlock it
	"ask":  prepareAsk,  // waits for a key
}

// result is the answer of a process: to a task when it is ready or cannot be, to each begin
// when it has worked, and at last when it has closed its clients.
type result struct {
	Cycles    int           // whose section began in time
	All       int           // all cycles since the beginning
	Shares    []int         // cycles of each goroutine
	Gap       time.Duration // longest time without a section
	Section   time.Duration // mean
	Waits     *waits        `json:",omitempty"` // from asking to having the lock
	CPU       float64       // in seconds, of all cycles
	Allocated int           // the number of cycles to which the allocations belong
	allocations
	At      int64         // when it unlocked or had the key, in ns since 1970
	Figures report.Sample // what only this role measures
	Failure string
}

// limit returns a time that each answer of the process stays far below.
func (t task) limit() time.Duration {
	return 2*(t.Warm+t.Lead+t.Duration) + time.Duration(t.Count+t.Goroutines)*2*time.Millisecond + 3*patience
}

// clients returns the options of every rueidis client that serves all servers: one for each, or
// one for a Redis Cluster or a Sentinel set.
func (t task) clients() (all []rueidis.ClientOption) {
	if t.Cluster || t.Set != "" {
		return []rueidis.ClientOption{{InitAddress: t.Addrs, DisableCache: true, Sentinel: rueidis.SentinelOption{MasterSet: t.Set}}}
	}
	for _, addr := range t.Addrs {
		all = append(all, options(addr))
	}
	return all
}

// room is at least 1: one that shares with nobody.
func (t task) room() int64 { return max(1, t.Room) }

func (t task) lease() time.Duration { return cmp.Or(t.Lease, usualLease) }

// key returns what goroutine i locks.
func (t task) key(i int) string {
	if t.Hot {
		return hotKey
	}
	return fmt.Sprintf("own:%d", i)
}

// opened are the clients of this process. They belong to the goroutine that carries out tasks.
var opened []locker

// open connects a client, which is closed at the end of the task.
func (t task) open() locker {
	l := libraries[t.Library].open(t)
	if t.Election {
		l = candidate{l}
	}
	opened = append(opened, l)
	return l
}

// openWarm also makes a first cycle, which teaches Redis the scripts.
func (t task) openWarm() locker {
	l := t.open()
	check(l.cycle(fmt.Sprintf("warm:%d", os.Getpid()))(func() {}))
	return l
}

// agentEnv is set in the processes that this program starts.
const agentEnv = "HOLDFAST_BENCH_AGENT"

// runAgent carries out tasks until its input ends, if this process was started for that.
func runAgent() bool {
	if os.Getenv(agentEnv) == "" {
		return false
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		if err := carryOut(in, out); err != nil {
			_ = out.Encode(result{Failure: err.Error()}) // the parent may have gone
			os.Exit(1)
		}
	}
	return true
}

// carryOut reads a task, lines that say when to begin and at what rate, and an empty line.
func carryOut(in *bufio.Scanner, out *json.Encoder) (err error) {
	defer caught(&err)
	var t task
	check(json.Unmarshal(in.Bytes(), &t))
	work := roles[t.Role](t)
	check(out.Encode(result{}))
	for in.Scan() && in.Text() != "" {
		var begin int64
		var rate float64
		must(fmt.Sscan(in.Text(), &begin, &rate))
		time.Sleep(time.Until(time.Unix(0, begin)))
		before := cpuNow()
		r := work(rate)
		r.CPU = cpuNow() - before
		check(out.Encode(r))
	}
	for _, l := range slices.Backward(opened) {
		l.close()
	}
	opened = nil
	return out.Encode(result{})
}

// cpuNow returns the processor time that this process has used, in seconds.
func cpuNow() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
