package exclusion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Records are lines which all processes of a run append to one file, each by one
// write, so that a process which is killed loses none:
//
//	G <id> <key> <owner> <reads> <fence> <ahead> <called> <time> <deadline>   an acquire returned
//	D <id> <deadline>   renewals have moved the deadline
//	E <id> <time>       the lease ended, or Unlock is about to be called
//	L <id> <kind>       the lease had been lost before its Unlock
//
// Times are readings of the shared clock in nanoseconds; ahead reports whether the fence is
// above the microseconds of the wall clock. An id begins with the
// name of its process and a dash.

// Recorder writes the records of one process.
type Recorder struct {
	File    *os.File      // immutable
	process string        // immutable
	last    atomic.Uint64 // number of the last lease
}

func NewRecorder(path, process string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return &Recorder{File: f, process: process}, err
}

func (r *Recorder) write(format string, args ...any) {
	if _, err := fmt.Fprintf(r.File, format, args...); err != nil { // one write
		panic(err)
	}
}

// Granted is called as soon as an acquire has returned, that of a reader or not, with the time of its call.
func (r *Recorder) Granted(l *holdfast.Lease, reads bool, called time.Duration) *Record {
	now := locktest.Clock()
	rec := &Record{recorder: r, lease: l, id: fmt.Sprintf("%s-%d", r.process, r.last.Add(1)), deadline: locktest.ClockAt(l.Deadline())}
	ahead := l.Fence() > time.Now().UnixMicro()
	r.write("G %s %s %s %t %d %t %d %d %d\n", rec.id, l.Key(), l.Owner(), reads, l.Fence(), ahead, called, now, rec.deadline)
	return rec
}

// Record is that of one lease; one goroutine's own.
type Record struct {
	recorder *Recorder
	lease    *holdfast.Lease
	fixed    bool // it is never renewed
	id       string
	deadline time.Duration // as last recorded
}

// Hold returns after d, or when the lease or ctx ends, and records renewals meanwhile.
func (r *Record) Hold(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	over := time.NewTimer(d)
	defer over.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-r.lease.Done():
			return
		case <-over.C:
			return
		case <-ctx.Done():
			return
		case <-look.C:
			if at := locktest.ClockAt(r.lease.Deadline()); at != r.deadline {
				r.deadline = at
				r.recorder.write("D %s %d\n", r.id, at)
			}
		}
	}
}

// Ends is called right before Unlock.
func (r *Record) Ends() {
	r.recorder.write("E %s %d\n", r.id, min(locktest.ClockAt(r.lease.Deadline()), locktest.Clock()))
}

// lost is called when Unlock has told of a loss.
func (r *Record) lost() {
	kind := "at-unlock"
	switch err := r.lease.Err(); {
	case errors.Is(err, watchdog.ErrNotOurs):
		kind = "denied"
	case errors.Is(err, watchdog.ErrMaxHold):
		kind = "capped"
	case errors.Is(err, watchdog.ErrDeadline) && r.fixed:
		kind = "fixed"
	case errors.Is(err, watchdog.ErrDeadline):
		kind = "ran-out"
	}
	r.recorder.write("L %s %s\n", r.id, kind)
}

// Records are what was recorded in a run.
type Records struct {
	Intervals  []Interval
	Operations int            // acquires, renewals and ends
	Killed     int            // leases whose process was killed
	Losses     map[string]int // leases that ended before their Unlock, by kind
}

func (r Records) Lost() (n int) {
	for _, of := range r.Losses {
		n += of
	}
	return n
}

// ReadRecords reads a file of records. died says when processes were killed; the
// leases of the others must have ended when the run is over. Until then they are
// left out, as is a record that is being written.
func ReadRecords(data []byte, died map[string]time.Duration, over bool) (Records, error) {
	if !over {
		data = data[:bytes.LastIndexByte(data, '\n')+1]
	}
	r := Records{Losses: map[string]int{}}
	open := map[string]Interval{} // leases without an end; to is the last deadline
	for line := range bytes.Lines(data) {
		kind, i, loss, err := readRecord(string(line))
		was, known := open[i.id]
		switch {
		case err != nil:
			return r, fmt.Errorf("record %q: %w", line, err)
		case kind == 'L': // the end is a line before
			r.Losses[loss]++
			continue
		case known == (kind == 'G'):
			return r, fmt.Errorf("record %q: out of order", line)
		case kind != 'G':
			was.to = i.to
			if kind == 'D' {
				was.until = i.to
			}
			i = was
		}
		r.Operations++
		if kind == 'E' {
			delete(open, i.id)
			r.Intervals = append(r.Intervals, i)
		} else {
			open[i.id] = i
		}
	}
	for id, i := range open {
		process, _, _ := strings.Cut(id, "-")
		end, dead := died[process]
		switch {
		case !dead && !over:
			continue
		case !dead:
			return r, fmt.Errorf("%v has no end", i)
		}
		i.to = min(i.to, end)
		r.Killed++
		r.Intervals = append(r.Intervals, i)
	}
	return r, nil
}

// readRecord reads one line, whose first byte is its kind.
func readRecord(line string) (kind byte, i Interval, loss string, err error) {
	switch kind = line[0]; kind {
	case 'G':
		_, err = fmt.Sscanf(line, "G %s %s %s %t %d %t %d %d %d\n", &i.id, &i.key, &i.owner, &i.reads, &i.fence, &i.ahead, &i.called, &i.from, &i.to)
		i.until = i.to
	case 'D', 'E':
		_, err = fmt.Sscanf(line[1:], " %s %d\n", &i.id, &i.to)
	case 'L':
		_, err = fmt.Sscanf(line, "L %s %s\n", &i.id, &loss)
	default:
		err = errors.New("not a record")
	}
	return kind, i, loss, err
}
