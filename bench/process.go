package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// errNotStarted makes a run fail at its end: what is installed must start.
var errNotStarted = errors.New("a process cannot be started")

// process is a program that this one has started: a server or a worker. It is immutable
// after launch.
type process struct {
	cmd  *exec.Cmd
	log  bytes.Buffer  // what it wrote; to be read after done
	done chan struct{} // closed when it has ended
}

// launch starts the process on a thread that lasts as long as the process does: the
// parent-death signal is sent at the end of the thread that forked.
func (p *process) launch() error {
	p.done = make(chan struct{})
	p.cmd.SysProcAttr = redistest.DieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the status of a killed process says nothing
		}
		close(p.done)
	}()
	return <-started
}

// withLog returns an error with the last lines of the log of a process that has ended.
func (p *process) withLog(why error) error {
	return fmt.Errorf("%s: %w; its log:\n%s", p.cmd.Path, why, tail(p.log.String()))
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill returns when the process has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
	<-p.done
}

// daemon is a server that is not a Redis.
type daemon struct {
	*starter
	*process
	addr string
}

func (d *daemon) addrs() []string { return []string{d.addr} }

func (d *daemon) during(f func()) spent {
	before := d.cpu()
	f()
	return spent{cpu: d.cpu() - before}
}

// cpu returns the processor time that the server has used, in seconds. Outside Linux it is
// unknown (NaN).
func (d *daemon) cpu() float64 {
	if p, err := procfs.NewProc(d.cmd.Process.Pid); err == nil {
		if stat, err := p.Stat(); err == nil {
			return stat.CPUTime()
		}
	}
	return math.NaN()
}

// daemons guards the running servers of all libraries.
var daemons sync.Mutex

// ownServer returns the library's own server, which starts when it is first needed and then
// stays warm until abandon. One that did not start twice is not tried again.
func (l *library) ownServer() (store, error) {
	daemons.Lock()
	defer daemons.Unlock()
	for try := 0; try < 2 && l.running == nil && (try > 0 || l.failed == nil); try++ { // again, as the port may have been taken
		l.running, l.failed = deploy(l.start)
	}
	return l.running, l.failed
}

// start returns when ready no longer fails.
func (l *library) start(s *starter) *daemon {
	d := &daemon{starter: s, addr: "127.0.0.1:" + freePort(s)}
	d.process = &process{cmd: l.server(s, d.addr)}
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	check(d.launch())
	s.Cleanup(d.kill)
	for limit := time.Now().Add(2 * patience); ; time.Sleep(5 * time.Millisecond) {
		err := l.ready(d.addr)
		switch {
		case err == nil:
			return d
		case d.ended():
			check(d.withLog(errors.New("it ended by itself")))
		case time.Now().After(limit):
			d.kill()
			check(d.withLog(err))
		}
	}
}

func freePort(s *starter) string { return strconv.Itoa(redistest.FreePort(s)) }

// abandon stops the library's own server, if there is one. After a failure, what was left
// there would disturb the next measurement, which gets a new server.
func (l *library) abandon() {
	daemons.Lock()
	defer daemons.Unlock()
	if l.running != nil {
		l.running.stop()
		l.running = nil
	}
}

func stopOwnServers() {
	for _, l := range libraries {
		l.abandon()
	}
}
