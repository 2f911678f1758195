package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childEnv tells this program that it is one process of many, and what to do.
const childEnv = "HOLDFAST_BENCH_CHILD"

// role is what kind of work a process does.
type role string

const (
	loadRole role = ""     // locks and unlocks
	waitRole role = "wait" // has many wait for a key
	keepRole role = "keep" // holds many keys
	saleRole role = "sale" // has a flash sale
	holdRole role = "hold" // holds a key until it is killed or told to unlock it
	askRole  role = "ask"  // waits for a key
)

// childTask is what a process is told.
type childTask struct {
	Addr     string
	Library  string
	Role     role
	Place    place
	Count    int // of waiters or leases
	Hot      bool
	Try      bool
	Section  time.Duration
	Inside   string        // the file where processes count who is inside; empty if there is one process
	Warm     time.Duration // how long to work before it is ready
	Lead     time.Duration // how long to work before what is measured
	Duration time.Duration // how long the work takes then, or takes at most
	Lease    time.Duration // where it is not the usual one
}

// preparing is how long it may take until the process is ready, as planned.
func (c childTask) preparing() time.Duration {
	return c.Warm + time.Duration(c.Count)*100*time.Microsecond
}

// working is how long the work takes, as planned.
func (c childTask) working() time.Duration { return c.Lead + c.Duration }

func (c childTask) lease() time.Duration { return cmp.Or(c.Lease, usualLease) }

// childResult is what it tells.
type childResult struct {
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
	At        int64  `json:",omitempty"` // when it unlocked or had the key, in ns since 1970
	Figures   sample `json:",omitempty"` // what the role tells by name
	Failure   string `json:",omitempty"`
}

// runChild does a child's task, if this process is one. A child writes a line
// when it is ready or cannot be, reads one that says when to begin, writes its result, and
// ends when its input does, so that nothing it sends while closing is counted.
func runChild() bool {
	text := os.Getenv(childEnv)
	if text == "" {
		return false
	}
	var task childTask
	err := json.Unmarshal([]byte(text), &task)
	out := json.NewEncoder(os.Stdout)
	if err == nil {
		err = task.run(bufio.NewReader(os.Stdin), out)
	}
	if err != nil {
		_ = out.Encode(err.Error()) // to the parent, who may have gone
		os.Exit(1)
	}
	return true
}

func (c childTask) run(in *bufio.Reader, out *json.Encoder) error {
	j, err := c.prepare()
	if err != nil {
		return err
	}
	defer j.close()
	if err := out.Encode(readyWord); err != nil {
		return err
	}
	var begin int64
	if _, err := fmt.Fscanln(in, &begin); err != nil {
		return nil // it is not needed any more
	}
	time.Sleep(time.Until(time.Unix(0, begin)))
	var result childResult
	used, err := cpuDuring(cpuNow, func() (err error) {
		result, err = j.work()
		return err
	})
	result.CPU = used
	if err != nil {
		result = childResult{Failure: err.Error()}
	}
	if err := out.Encode(result); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in) // until the parent has counted
	return nil
}

// readyWord is what a child says when it is ready; another word is why it is not.
const readyWord = "ready"

// child is a process that this one started.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	works time.Duration // how long, as planned
}

// limit kills a process that takes much longer than planned. over takes the limit off,
// and says of the error with which the process ended if that was why.
func limit(cmd *exec.Cmd, planned time.Duration) (over func(error) error) {
	most := 2*planned + 3*patience
	timer := time.AfterFunc(most, func() { _ = cmd.Process.Kill() })
	return func(err error) error {
		if !timer.Stop() && err != nil {
			return fmt.Errorf("%w %v: %w", errTooLong, most, err)
		}
		return err
	}
}

var errTooLong = errors.New("killed, as it took longer than")

// startChild returns when the child is ready. One that ends by itself without a word
// has not started.
func startChild(task childTask) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self), works: task.working()}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	var log bytes.Buffer // to be read when the process has ended
	c.cmd.Stderr = io.MultiWriter(os.Stderr, &log)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	over := limit(c.cmd, task.preparing())
	var ready string
	if err := over(c.out.Decode(&ready)); err != nil {
		c.end()
		if ended(err) {
			return nil, notStarted("child process", err, &log)
		}
		return nil, fmt.Errorf("child process: %w", err)
	}
	if ready != readyWord {
		c.end()
		return nil, fmt.Errorf("child process: %s", ready)
	}
	return c, nil
}

// begin lets the child begin at a time that all clocks of this machine know.
func (c *child) begin(at time.Time) error {
	_, err := fmt.Fprintln(c.in, at.UnixNano())
	return err
}

// result waits for what the child found.
func (c *child) result() (childResult, error) {
	over := limit(c.cmd, c.works)
	var r childResult
	if err := over(c.out.Decode(&r)); err != nil {
		return r, fmt.Errorf("child process: %w", err)
	}
	if r.Failure != "" {
		return r, fmt.Errorf("child process: %s", r.Failure)
	}
	return r, nil
}

func (c *child) kill() error { return c.cmd.Process.Kill() }

// release lets the child close its client and end. It may be repeated.
func (c *child) release() { _ = c.in.Close() }

// end waits for that, and kills a child that does not.
func (c *child) end() {
	c.release()
	stuck := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer stuck.Stop()
	_ = c.cmd.Wait() // its result has been told, or its failure
}
