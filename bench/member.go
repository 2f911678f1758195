package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// startMember starts a process of this program, or has a Java process work. Of
// those there is one for each place in a crew, which is kept: it is warm then. One
// that has ended by itself is replaced.
func startMember(task childTask) (member, error) {
	kind, ok := redissonLocks[task.Library]
	if !ok {
		return startChild(task)
	}
	a, err := agentAt(task.Place.Process)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	if err := a.take(task, kind); err != nil {
		a.stop()
		return nil, err
	}
	return a, nil
}

// redissonLocks are the kinds of lock as bench/java names them.
var redissonLocks = map[string]string{
	redissonName:     "plain",
	redissonFairName: "fair",
	redissonSpinName: "spin",
}

// javaDir is where the Java program is, seen from the folder of this one.
const javaDir = "java"

// agents are the Java processes, by place. They belong to one goroutine.
var agents = make(map[int]*agent)

// stopAgents ends all of them.
func stopAgents() {
	for _, a := range agents {
		a.stop()
	}
}

// javaWarm is how long a Java process does each kind of work before it is measured
// for the first time.
var javaWarm = 3 * time.Second

// agent is a Java process. What comes after done belongs to the goroutine that uses
// it, the rest is immutable.
type agent struct {
	place int
	cmd   *exec.Cmd
	in    io.WriteCloser
	pipe  *os.File // its output
	out   *json.Decoder
	log   *bytes.Buffer // to be read when the process has ended
	done  chan struct{}

	works  time.Duration   // how long, as planned
	busy   bool            // it has a task, and has not closed its client
	broken bool            // what it told of the task was a failure
	ready  bool            // it has been, once
	warm   map[string]bool // the kinds of work that it has done
}

// agentAt returns the process of a place, which is started if need be.
func agentAt(place int) (*agent, error) {
	if a, ok := agents[place]; ok {
		select {
		case <-a.done:
			a.stop()
		default:
			return a, nil
		}
	}
	if err := buildJava(); err != nil {
		return nil, err
	}
	return startAgent(place)
}

// startAgent starts the Java program as it was built.
func startAgent(place int) (*agent, error) {
	a := &agent{place: place, log: &bytes.Buffer{}, done: make(chan struct{}), warm: make(map[string]bool)}
	classes, libraries := filepath.Join(javaDir, "target", "classes"), filepath.Join(javaDir, "target", "lib", "*")
	a.cmd = exec.Command("java", "-Xms256m", "-Xmx1g", "-cp", classes+string(os.PathListSeparator)+libraries, "bench.Agent")
	a.cmd.Stderr = io.MultiWriter(os.Stderr, a.log)
	a.cmd.SysProcAttr = dieWithParent()
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of the system's own: StdoutPipe's is closed by the wait for the process.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	a.cmd.Stdout = write
	a.pipe, a.out = read, json.NewDecoder(bufio.NewReader(read))
	err = launch(a.cmd, a.done)
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	agents[place] = a
	return a, nil
}

// buildTime is how long Maven may take; it may have to load everything.
const buildTime = 5 * time.Minute

var buildJava = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(always, buildTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", javaDir, "process-classes").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mvn -f %s process-classes: %w:\n%s", javaDir, err, tail(string(out)))
	}
	return nil
})

// take gives the process a task and returns when it is ready. A process that ends
// by itself before it was ever ready has not started.
func (a *agent) take(t childTask, kind string) error {
	a.busy = true
	// Seconds of a recovery need no warm process.
	if work := fmt.Sprint(kind, t.Role, t.Hot, t.Try); !a.warm[work] && t.Role != holdRole && t.Role != askRole {
		a.warm[work] = true
		t.Warm = max(t.Warm, javaWarm)
	}
	a.works = t.working()
	over := limit(a.cmd, t.preparing())
	_, err := fmt.Fprintln(a.in, t.Addr, kind, cmp.Or(t.Role, "load"), t.Place.Process, t.Place.Processes, t.Place.Goroutines,
		t.Count, t.Hot, t.Try, t.Section.Nanoseconds(), t.Warm.Nanoseconds(), t.Lead.Nanoseconds(), t.Duration.Nanoseconds(), t.Lease.Nanoseconds(), t.Inside)
	if err == nil {
		err = a.hears(readyWord)
	}
	if err == nil {
		a.ready = true
	}
	if err = over(err); a.ready || !ended(err) {
		return err
	}
	<-a.done
	return notStarted("java", err, a.log)
}

// ended says whether an error is that a process has gone by itself without a word.
func ended(err error) bool {
	return !errors.Is(err, errTooLong) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE))
}

func notStarted(what string, err error, log *bytes.Buffer) error {
	return fmt.Errorf("%w: %s: %w; its log:\n%s", errNotStarted, what, err, tail(log.String()))
}

func (a *agent) hears(want string) error {
	var word string
	if err := a.out.Decode(&word); err != nil {
		return fmt.Errorf("java process: %w", err)
	}
	if word != want {
		return fmt.Errorf("java process: %q instead of %q", word, want)
	}
	return nil
}

func (a *agent) kill() error { return a.cmd.Process.Kill() }

func (a *agent) begin(at time.Time) error {
	_, err := fmt.Fprintln(a.in, at.UnixNano())
	return err
}

func (a *agent) result() (childResult, error) {
	over := limit(a.cmd, a.works)
	var r childResult
	if err := over(a.out.Decode(&r)); err != nil {
		return r, fmt.Errorf("java process: %w", err)
	}
	if a.broken = r.Failure != ""; a.broken {
		return r, fmt.Errorf("java process: %s", r.Failure)
	}
	return r, nil
}

// release lets it close its client.
func (a *agent) release() { _, _ = fmt.Fprintln(a.in) }

// end waits until it has. A process that is in disorder is stopped; the next task
// gets another.
func (a *agent) end() {
	if !a.busy {
		return
	}
	stuck := time.AfterFunc(patience, func() { _ = a.cmd.Process.Kill() })
	defer stuck.Stop()
	if err := a.hears("closed"); err != nil || a.broken {
		a.stop()
	}
	a.busy = false
}

func (a *agent) stop() {
	_ = a.in.Close()
	_ = a.cmd.Process.Kill() // fails only if the process has ended already
	<-a.done
	_ = a.pipe.Close() // nobody reads any more
	delete(agents, a.place)
}
