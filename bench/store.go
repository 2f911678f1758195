package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// store is a server that keeps locks: a Redis, or what a rival has instead.
type store interface {
	address() string
	// cpu is the processor time that it has used, in seconds.
	cpu() (float64, error)
	// callsDuring returns what was executed while f ran; nil where the store does
	// not tell.
	callsDuring(f func() error) (calls, error)
}

// storeOf is where a library keeps its locks: s, or the one server of its kind that
// this program starts when it is first needed, and which is warm from then on. One
// that has ended is started again, one that did not start twice is not tried again.
func storeOf(library string, s *server) (store, error) {
	start, ok := starters[library]
	if !ok {
		return s, nil
	}
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
	p, err := start()
	if err != nil {
		p, err = start() // the port may have been another's
	}
	if err != nil {
		running.failed[library] = fmt.Errorf("%w: %w", errNotStarted, err)
		return nil, running.failed[library]
	}
	running.stores[library] = p
	return p, nil
}

// abandon stops the server of a library that has failed: what it left there would be
// in the way of the next, who gets a new one.
func abandon(library string) {
	running.mu.Lock()
	defer running.mu.Unlock()
	if p, ok := running.stores[library]; ok {
		p.stop()
		delete(running.stores, library)
	}
}

// errNotStarted makes a run fail at its end: what is installed must start.
var errNotStarted = errors.New("a server cannot be started")

var starters = map[string]func() (*process, error){
	etcdName:      startEtcd,
	zookeeperName: startZookeeper,
}

// running is what this program has started for rivals.
var running = struct {
	mu     sync.Mutex
	stores map[string]*process // guarded by mu
	failed map[string]error    // why they did not start; guarded by mu
}{stores: make(map[string]*process), failed: make(map[string]error)}

// stopStores stops all of them.
func stopStores() {
	running.mu.Lock()
	defer running.mu.Unlock()
	for library, p := range running.stores {
		p.stop()
		delete(running.stores, library)
	}
}

// process is a server that is not a Redis, with its files in a directory of its
// own. Everything in it is immutable after startProcess.
type process struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when the process has ended
}

// memoryDir is where rivals keep their files: memory, if the system has such a
// place, so that no disk slows them.
func memoryDir() (string, error) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if dir, err := os.MkdirTemp("/dev/shm", "holdfast-bench-"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "holdfast-bench-")
}

// startProcess starts a server and returns when ready does not fail any more.
// command gets the directory of the server's files and its address.
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
	p.cmd.SysProcAttr = dieWithParent()
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

// launch starts cmd on a thread of its own, which lasts as long as the process: the
// parent-death signal follows the thread that forked. done is closed at its end.
func launch(cmd *exec.Cmd, done chan struct{}) error {
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

func (p *process) wait(ready func(addr string) error) error {
	limit := time.Now().Add(2 * patience)
	for {
		err := ready(p.addr)
		if err == nil || time.Now().After(limit) {
			return err
		}
		select {
		case <-p.done:
			return errors.New("it ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *process) address() string { return p.addr }

func (p *process) callsDuring(f func() error) (calls, error) { return nil, f() }

// cpu is not known (NaN) but on Linux.
func (p *process) cpu() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return nan, nil
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/…/stat: %q", text)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	const ticks = 100 // a second, on every Linux that Go knows
	return (user + system) / ticks, err
}

// stop kills the server, waits for its end and removes its files.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
	<-p.done
	_ = p.log.Close()
	_ = os.RemoveAll(p.dir)
}

// tail is the last lines of a log.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
