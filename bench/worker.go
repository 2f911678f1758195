package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// worker is a process, in Go or Java, that does tasks. A Java process does many, as it has to
// warm up. The second group of fields belongs to the goroutine that uses the worker; the
// others are immutable.
type worker struct {
	*process
	in   io.WriteCloser
	pipe *os.File // its output
	out  *json.Decoder

	works  time.Duration   // how long its task is planned to take
	ready  bool            // it has answered once
	broken bool            // it did not do what it should
	warm   map[string]bool // the kinds of work that a Java process has done
}

// startWorker returns when a process is ready for a task. One that ends before it was ever
// ready has not started.
func startWorker(t task) (w *worker, err error) {
	if kind := libraries[t.Library].java; kind != "" {
		w, err = javaWorker(t.Process)
		if err == nil && t.Role != "hold" && t.Role != "ask" { // the seconds of a recovery need no warm process
			if work := fmt.Sprint(kind, t.Role, t.Hot, t.Try); !w.warm[work] {
				w.warm[work] = true
				t.Warm = max(t.Warm, javaWarm)
			}
		}
		t.Library = kind
	} else {
		w, err = startSelf()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	if err := w.take(t); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func startSelf() (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), agentEnv+"=1")
	return newWorker(cmd)
}

func newWorker(cmd *exec.Cmd) (w *worker, err error) {
	w = &worker{process: &process{cmd: cmd}}
	cmd.Stderr = io.MultiWriter(os.Stderr, &w.log)
	if w.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Not StdoutPipe: the wait for the process would close it before all is read.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	w.pipe, w.out = read, json.NewDecoder(bufio.NewReader(read))
	if err := errors.Join(w.launch(), write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return w, nil
}

// take gives the process a task and returns when it is ready.
func (w *worker) take(t task) error {
	w.works = t.working()
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w.in, "%s\n", text) // what goes wrong is heard
	_, err = w.hear(t.preparing())
	return err
}

// begin lets it begin at a time that all clocks of this machine know.
func (w *worker) begin(at time.Time, rate float64) {
	_, _ = fmt.Fprintln(w.in, at.UnixNano(), rate) // what goes wrong is heard
}

// result waits for what it found.
func (w *worker) result() (result, error) { return w.hear(w.works) }

// hear waits for an answer, and kills a process that takes much longer for it than planned.
func (w *worker) hear(planned time.Duration) (r result, err error) {
	most := 2*planned + 3*patience
	timer := time.AfterFunc(most, w.kill)
	err = w.out.Decode(&r)
	late := !timer.Stop()
	switch {
	case err != nil && late:
		err = fmt.Errorf("killed, as it took longer than %v: %w", most, err)
	case err != nil && !w.ready:
		err = w.notStarted(err)
	case err == nil && r.Failure != "":
		err = errors.New(r.Failure)
	}
	w.ready = w.ready || err == nil
	w.broken = w.broken || err != nil
	if err != nil {
		return r, fmt.Errorf("process: %w", err)
	}
	return r, nil
}

// release lets it close its clients.
func (w *worker) release() { _, _ = fmt.Fprintln(w.in) }

// end waits until it has. A Java process in good order is kept, others are stopped.
func (w *worker) end() {
	if !w.broken {
		_, _ = w.hear(0)
	}
	if w.broken || w.warm == nil {
		w.stop()
	}
}

// stop ends the process. It may be repeated.
func (w *worker) stop() {
	_ = w.in.Close()
	w.kill()
	_ = w.pipe.Close() // nothing reads it any more
}
