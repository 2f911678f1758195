package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/bench/report"
)

// task is what a process is told: one of this program, or of the Java program in java,
// which does the same. Each is in its own memory, so that it can be measured and killed.
type task struct {
	Addrs   []string
	Library string // for Java: the kind of lock
	Role    string // a key of roles
	Process int    // the place of this process
	Processes,
	Goroutines int // of each process
	Count    int // of waiters or leases
	Hot      bool
	Try      bool
	Section  time.Duration
	Inside   string        // the file where processes count those inside; empty if there is one process
	Warm     time.Duration // how long to work before it is ready
	Lead     time.Duration // how long to work before what is measured
	Duration time.Duration // how long the work takes then, or takes at most
	Lease    time.Duration // where it is not the usual one
}

// roles are the kinds of work. Each prepares everything that has to be there before the
// work is measured.
var roles = map[string]func(task) (job, error){
	"load": prepareLoad, // locks and unlocks
	"wait": prepareWait, // has many wait for a key
	"keep": prepareKeep, // keeps many keys
	"sale": prepareSale, // has a flash sale
	"hold": prepareHold, // holds a key until it is killed or told to unlock it
	"ask":  prepareAsk,  // waits for a key
}

// job is a process' work, ready to begin.
type job interface {
	// work does it once; rate is for those that have one.
	work(rate float64) (result, error)
	close()
}

// result is what a process answers: to a task when it is ready or cannot be, to each
// begin when it has worked, and when it has closed its clients.
type result struct {
	Cycles    int   // whose section began in time
	All       int   // all that were made since the beginning
	Shares    []int // cycles of each goroutine
	Gap       time.Duration
	Section   time.Duration // mean
	Waits     string        // histogram of ns from asking to having the lock, as HdrHistogram writes it
	CPU       float64       // in seconds, of all cycles
	Allocated int           // of how many cycles the next two are
	Objects   uint64
	Bytes     uint64
	At        int64         // when it unlocked or had the key, in ns since 1970
	Figures   report.Sample // what the role tells by name
	Failure   string
}

// preparing is how long it may take until the process is ready, as planned.
func (t task) preparing() time.Duration {
	return t.Warm + time.Duration(t.Count)*100*time.Microsecond
}

// working is how long the work takes, as planned.
func (t task) working() time.Duration {
	return t.Lead + t.Duration + time.Duration(t.Goroutines)*time.Millisecond
}

func (t task) lease() time.Duration { return cmp.Or(t.Lease, usualLease) }

// agentEnv tells this program that it is one process of many.
const agentEnv = "HOLDFAST_BENCH_AGENT"

// runAgent does what it is told, if this process is such a one, and ends with its input.
func runAgent() bool {
	if os.Getenv(agentEnv) == "" {
		return false
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		if err := carryOut(in, out); err != nil {
			_ = out.Encode(result{Failure: err.Error()}) // to a parent that may have gone
			os.Exit(1)
		}
	}
	return true
}

// carryOut reads a task, lines that say when to begin and at what rate, and an empty line.
func carryOut(in *bufio.Scanner, out *json.Encoder) error {
	var t task
	if err := json.Unmarshal(in.Bytes(), &t); err != nil {
		return err
	}
	j, err := roles[t.Role](t)
	if err != nil {
		return err
	}
	defer j.close()
	if err := out.Encode(result{}); err != nil {
		return err
	}
	for in.Scan() && in.Text() != "" {
		var begin int64
		var rate float64
		if _, err := fmt.Sscan(in.Text(), &begin, &rate); err != nil {
			return err
		}
		time.Sleep(time.Until(time.Unix(0, begin)))
		before := cpuNow()
		r, err := j.work(rate)
		r.CPU = cpuNow() - before
		if err != nil {
			r = result{Failure: err.Error()}
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	j.close()
	return out.Encode(result{})
}

// cpuNow is the processor time that this process has used, in seconds; 0 if it is not known.
func cpuNow() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
