package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
)

// process is the parent's side of a process to which customers come. Its fields
// are owned by the loop of the day, but for cmd, for whose end the listener waits.
type process struct {
	number int // immutable; from 1
	cmd    *exec.Cmd
	in     io.WriteCloser
	to     *json.Encoder
	killed bool
}

// event is what the goroutine that listens to a process hands to the loop.
type event struct {
	from   *process
	report report
	ended  error // not nil: the process has ended, and this is the last event
}

// startProcess starts this program again. The goroutine that listens to the
// process ends after its last event has been taken.
func startProcess(number int, s setup, events chan<- event) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{number: number, cmd: cmd, in: in, to: json.NewEncoder(in)}
	p.send(s)
	go p.listen(json.NewDecoder(out), events) // the day takes events until it has seen the last
	return p, nil
}

func (p *process) listen(from *json.Decoder, events chan<- event) {
	var r report
	for from.Decode(&r) == nil {
		events <- event{from: p, report: r}
		r = report{}
	}
	ended := p.cmd.Wait()
	if ended == nil {
		ended = errors.New("exit status 0")
	}
	events <- event{from: p, ended: ended}
}

// send tells the process something. If it is dead, its last event says so.
func (p *process) send(v any) { _ = p.to.Encode(v) }

// kill is SIGKILL.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // fails only if it has ended
}
