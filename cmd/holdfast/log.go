package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// warnings is a log handler that prints what a locker warns of, in lines like those of errors.
type warnings struct{ to io.Writer }

// told are warnings that run itself gives, in other words.
var told = []string{"holdfast: lease lost", "holdfast: release failed"}

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	for _, begin := range told {
		if strings.HasPrefix(r.Message, begin) {
			return nil
		}
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
