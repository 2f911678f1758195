package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childEnv tells this program that it is one process of many, and what to do.
const childEnv = "HOLDFAST_BENCH_CHILD"

// childTask is what a process is told.
type childTask struct {
	Addr     string
	Library  string
	Place    place
	Section  time.Duration
	Duration time.Duration
}

// childResult is what it tells.
type childResult struct {
	Cycles  int
	All     int
	Gap     time.Duration
	Section time.Duration // mean
	CPU     float64       // in seconds
	Failure string        `json:",omitempty"`
}

// runChild does a child's task, if this process is one. A child writes a line
// when it is ready, reads one that says when to begin, writes its result, and
// ends when its input does, so that nothing it sends while closing is counted.
func runChild() bool {
	text := os.Getenv(childEnv)
	if text == "" {
		return false
	}
	var task childTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run(bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout))
	}
	if err != nil {
		fail(err)
	}
	return true
}

func (c childTask) run(in *bufio.Reader, out *json.Encoder) error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.close()
	// Opens the connections and teaches Redis the scripts.
	if err := l.cycle(fmt.Sprintf("warm:%d", os.Getpid()))(func() {}); err != nil {
		return err
	}
	if err := out.Encode("ready"); err != nil {
		return err
	}
	var begin int64
	if _, err := fmt.Fscanln(in, &begin); err != nil {
		return err
	}
	time.Sleep(time.Until(time.Unix(0, begin)))
	var result childResult
	var t tally
	cpu, err := cpuDuring(cpuNow, func() (err error) {
		t, err = load{goroutines: c.Place.Goroutines, hot: true, section: c.Section, gaps: true}.run(l, c.Duration)
		return err
	})
	if err != nil {
		result.Failure = err.Error()
	} else {
		result = childResult{Cycles: t.cycles, All: t.all, Gap: t.gap, Section: t.meanSection(), CPU: cpu}
	}
	if err := out.Encode(result); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in) // until the parent has counted
	return nil
}

func (c childTask) open() (locker, error) {
	if c.Library == ringName {
		return openRing(c.Addr, c.Place)
	}
	return libraries[c.Library](c.Addr, usualLease)
}

// child is a process that this one started.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startChild returns when the child is ready.
func startChild(task childTask) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	var ready string
	if err := c.out.Decode(&ready); err != nil {
		c.end()
		return nil, fmt.Errorf("child process: %w", err)
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
	var r childResult
	if err := c.out.Decode(&r); err != nil {
		return r, fmt.Errorf("child process: %w", err)
	}
	if r.Failure != "" {
		return r, fmt.Errorf("child process: %s", r.Failure)
	}
	return r, nil
}

// release lets the child close its client and end. It may be repeated.
func (c *child) release() { _ = c.in.Close() }

// end waits for that.
func (c *child) end() {
	c.release()
	_ = c.cmd.Wait() // its result has been told, or its failure
}
