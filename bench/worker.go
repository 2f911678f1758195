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

	limit  time.Duration   // for each answer to the present task
	ready  bool            // it has answered once
	broken bool            // it did not do what it should
	warm   map[string]bool // the kinds of work that a Java process has done
}

// startWorker returns when a process is ready to begin a task. One that ends before it was
// ever ready counts as not started.
func startWorker(t task) (w *worker, err error) {
	if kind := libraries[t.Library].java; kind != "" {
		w, err = javaWorker(t.Process)
		if err == nil && t.Role != "hold" && t.Role != "ask" { // the seconds of a recovery need no warm process
			if work := fmt.Sprint(kind, t.Role, t.Hot, t.Try, t.Cluster, t.Set); !w.warm[work] {
				w.warm[work] = true
				t.Warm = max(t.Warm, javaWarm)
			}
		}
		t.Library = kind
	} else {
		w, err = newWorker(os.Args[0])
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

// newWorker starts a program, which knows by agentEnv that it is a worker.
func newWorker(program string, args ...string) (_ *worker, err error) {
	defer caught(&err)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), agentEnv+"=1")
	w := &worker{process: &process{cmd: cmd}}
	cmd.Stderr = io.MultiWriter(os.Stderr, &w.log)
	w.in = must(cmd.StdinPipe())
	// Not StdoutPipe: the wait for the process would close it before all is read.
	read, write, err := os.Pipe()
	check(err)
	cmd.Stdout = write
	w.pipe, w.out = read, json.NewDecoder(bufio.NewReader(read))
	if err := errors.Join(w.launch(), write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return w, nil
}

// take gives the process a task, and returns when the process is ready to begin.
func (w *worker) take(t task) error {
	w.limit = t.limit()
	_ = json.NewEncoder(w.in).Encode(t) // hear reports what goes wrong
	_, err := w.hear()
	return err
}

// begin tells the process when to begin, by the clock that all processes of this machine share.
func (w *worker) begin(at time.Time, rate float64) {
	_, _ = fmt.Fprintln(w.in, at.UnixNano(), rate) // hear reports what goes wrong
}

// hear waits for an answer, and kills a process that takes too long for it.
func (w *worker) hear() (r result, err error) {
	timer := time.AfterFunc(w.limit, w.kill)
	err = w.out.Decode(&r)
	late := !timer.Stop()
	switch {
	case err != nil && late:
		err = fmt.Errorf("killed, as it took longer than %v: %w", w.limit, err)
	case err != nil && !w.ready:
		w.kill()
		err = fmt.Errorf("%w: %w", errNotStarted, w.withLog(err))
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

// release tells the process to close its clients.
func (w *worker) release() { _, _ = fmt.Fprintln(w.in) }

// end waits until it has. It keeps a Java process that works as it should, and stops others.
func (w *worker) end() {
	if !w.broken {
		_, _ = w.hear()
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
