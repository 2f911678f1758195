//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// findRedis returns the path of redis-server, or why there is none.
func findRedis() (path, why string) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", "as redis-server is not on the PATH"
	}
	return path, ""
}

// process is a redis-server.
type process struct {
	path, port string        // immutable
	cmd        *exec.Cmd     // of the last start
	done       chan struct{} // closed when that has ended
}

func newProcess(path, port string) server { return &process{path: path, port: port} }

func (p *process) start() error {
	p.cmd = exec.Command(p.path, "--port", p.port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", os.TempDir()) // where nothing is written
	p.cmd.SysProcAttr = attributes()
	said := make(chan error, 2)
	p.done = make(chan struct{})
	go attend(p.cmd, said, p.done) // until kill
	if err := <-said; err != nil {
		return err
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case err := <-said:
		return err
	case <-timer.C:
		p.kill()
		return errSlow
	}
}

// attend starts cmd and waits for its end. It says whether the process was started,
// and then whether it listens.
func attend(cmd *exec.Cmd, said chan<- error, done chan<- struct{}) {
	defer close(done)
	// The parent-death signal follows the thread that forked, so that thread must
	// live as long as the server.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	said <- err
	if err != nil {
		return
	}
	listens, last := false, "says nothing"
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = lines.Text()
		if !listens && strings.Contains(last, "Ready to accept connections") {
			listens = true
			said <- nil
		}
	}
	_ = cmd.Wait() // the status of a killed process says nothing
	if !listens {
		said <- errors.New("redis-server ended: " + last)
	}
}

func (p *process) kill() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // fails only if it has ended
	}
	<-p.done
}

func (p *process) pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) } // fails only if it has ended

func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) } // fails only if it has ended
