package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// warnings is a log handler that prints what a locker warns of, in lines like those of errors.
type warnings struct{ to io.Writer }

// told are warnings that run itself gives, in other words.
var told = []string{"holdfast: lease lost", "holdfast: release failed"}

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if slices.ContainsFunc(told, func(begin string) bool { return strings.HasPrefix(r.Message, begin) }) {
		return nil
	}
	line := "holdfast: " + strings.TrimPrefix(r.Message, "holdfast: ")
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf("; %s: %v", a.Key, a.Value)
		return true
	})
	_, err := fmt.Fprintln(w.to, line)
	return err
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w } // no locker has any
func (w warnings) WithGroup(string) slog.Handler      { return w }

// unread is a writer for lines that perhaps nobody reads for a while. It does not hold up who writes: locks are
// renewed there, and a command that has lost its lock must be ended. While a thousand wait, further ones are dropped.
type unread struct {
	lines   chan []byte   // nil: the last
	written chan struct{} // one slot
}

func newUnread(to io.Writer) *unread {
	u := &unread{make(chan []byte, 1000), make(chan struct{}, 1)}
	go func() { // ends by flush
		for line := range u.lines {
			if line == nil {
				u.written <- struct{}{}
				return
			}
			_, _ = to.Write(line)
		}
	}()
	return u
}

func (u *unread) Write(line []byte) (int, error) {
	select {
	case u.lines <- slices.Clone(line):
	default:
	}
	return len(line), nil
}

// flush waits until all lines are written, but no longer than a second. Later ones are dropped.
func (u *unread) flush() {
	late := time.After(time.Second)
	select {
	case u.lines <- nil:
	case <-late:
		return
	}
	select {
	case <-u.written:
	case <-late:
	}
}
