package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// process is the parent's side of a process that places orders. Its fields are
// owned by the loop of the sale, but for cmd, for whose end the listener waits.
type process struct {
	number int // immutable; from 1
	cmd    *exec.Cmd
	in     io.WriteCloser
	to     *json.Encoder
	jobs   map[int]bool // the orders that it was given and has not reported
	killed bool
}

// event is what the goroutine that listens to a process hands to the loop.
type event struct {
	from   *process
	report report
	ended  error // not nil: the process has ended, and this is the last event
}

// startProcess starts this program again as a process that reports to events.
// The goroutine that listens to it ends after its last event has been taken.
func startProcess(number int, s setup, events chan<- event) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{number: number, cmd: exec.Command(self), jobs: map[int]bool{}}
	p.cmd.Env = append(os.Environ(), workerEnv+"=1")
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.to = json.NewEncoder(p.in)
	p.send(s)
	go func() { // owned by the sale, which takes events until it has seen the last
		from := json.NewDecoder(out)
		for {
			var r report
			if from.Decode(&r) != nil {
				break
			}
			events <- event{from: p, report: r}
		}
		ended := p.cmd.Wait()
		if ended == nil {
			ended = fmt.Errorf("exit status 0")
		}
		events <- event{from: p, ended: ended}
	}()
	return p, nil
}

// send gives a setup or a job to the process. If that is dead, its last event
// says so.
func (p *process) send(v any) { _ = p.to.Encode(v) }

// kill is SIGKILL.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // fails only if it has ended
}
