package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	// errNotStarted makes a run fail at its end: what is installed must start.
	errNotStarted = errors.New("a process cannot be started")
	errEnded      = errors.New("it ended by itself")
)

// launch starts cmd on a thread of its own, which lasts as long as the process: the
// parent-death signal follows the thread that forked. done is closed at its end.
func launch(cmd *exec.Cmd, done chan struct{}) error {
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the status of a killed process says nothing
		}
		close(done)
	}()
	return <-started
}

// freePort is one that is probably free, below those that systems give to outgoing
// connections.
func freePort() int { return 12000 + rand.IntN(20000) }

// tail is the last lines of a log.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// memoryDir makes a directory in memory, if the system has a place for it, so that no disk
// slows anybody.
func memoryDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "holdfast-bench-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "holdfast-bench-")
}

// process is a server that is not a Redis, with its files in a directory of its own.
// Everything in it but the mark is immutable after startProcess.
type process struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when the process has ended
	used float64       // processor time at the mark, in seconds
}

// startProcess starts a server and returns when ready does not fail any more. command gets
// the directory of the server's files and its address.
func startProcess(command func(dir, addr string) (*exec.Cmd, error), ready func(addr string) error) (*process, error) {
	dir, err := memoryDir()
	if err != nil {
		return nil, err
	}
	p := &process{addr: "127.0.0.1:" + strconv.Itoa(freePort()), dir: dir, done: make(chan struct{})}
	if p.cmd, err = command(dir, p.addr); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := launch(p.cmd, p.done); err != nil {
		return nil, errors.Join(err, p.log.Close(), os.RemoveAll(dir))
	}
	if err := p.wait(ready); err != nil {
		text, _ := os.ReadFile(p.log.Name()) // what can be had of it
		p.stop()
		return nil, fmt.Errorf("%s on %s: %w; its log:\n%s", p.cmd.Path, p.addr, err, tail(string(text)))
	}
	return p, nil
}

func (p *process) wait(ready func(addr string) error) error {
	limit := time.Now().Add(2 * patience)
	for {
		err := ready(p.addr)
		if err == nil || time.Now().After(limit) {
			return err
		}
		select {
		case <-p.done:
			return errEnded
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *process) addrs() []string { return []string{p.addr} }

func (p *process) mark() error {
	p.used = p.cpu()
	return nil
}

func (p *process) spent() (spent, error) { return spent{cpu: p.cpu() - p.used}, nil }

// cpu is the processor time that it has used, in seconds; not known (NaN) but on Linux.
func (p *process) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 13 {
		return math.NaN()
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err != nil || err2 != nil {
		return math.NaN()
	}
	const ticks = 100 // a second, on every Linux that Go knows
	return (user + system) / ticks
}

// stop kills the server, waits for its end and removes its files.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
	<-p.done
	_ = p.log.Close()
	_ = os.RemoveAll(p.dir)
}

// running is what this program has started for rivals.
var running = struct {
	mu     sync.Mutex
	stores map[string]*process // guarded by mu
	failed map[string]error    // why they did not start; guarded by mu
}{stores: make(map[string]*process), failed: make(map[string]error)}

// ownServer is the one server of a library's kind, which is started when it is first needed
// and is warm from then on. One that has ended is started again; one that did not start
// twice is not tried again.
func ownServer(library string) (store, error) {
	running.mu.Lock()
	defer running.mu.Unlock()
	if p, ok := running.stores[library]; ok {
		select {
		case <-p.done:
			p.stop()
			delete(running.stores, library)
		default:
			return p, nil
		}
	}
	if err := running.failed[library]; err != nil {
		return nil, err
	}
	p, err := libraries[library].server()
	if err != nil {
		p, err = libraries[library].server() // the port may have been another's
	}
	if err != nil {
		running.failed[library] = fmt.Errorf("%w: %w", errNotStarted, err)
		return nil, running.failed[library]
	}
	running.stores[library] = p
	return p, nil
}

// abandon stops the server of a library that has failed: what it left there would be in
// the way of the next measurement, which gets a new one.
func abandon(library string) {
	running.mu.Lock()
	defer running.mu.Unlock()
	if p, ok := running.stores[library]; ok {
		p.stop()
		delete(running.stores, library)
	}
}

// stopOwnServers stops all of them.
func stopOwnServers() {
	for library := range libraries {
		abandon(library)
	}
}
