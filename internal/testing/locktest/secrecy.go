package locktest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

// Password is that of all users whose names the suites give to a lock. No error and no log
// may show it.
const Password = "canary-1f0c63b5a9"

// Every error and every log line of every case is looked through for secrets.

// secret is what none of them may have: an owner's uuid, a password, a URL, a key with the prefix
// of the suites.
var secret = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|` + Password + `|://|"lock:[^"\\]`)

// control is what text may have only in quotes: it would forge lines of a log.
var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)

// tells says what is wrong with a text that a user may see, or "".
func tells(text string) string {
	switch {
	case secret.MatchString(text):
		return "it tells " + secret.FindString(text)
	case control.MatchString(text), !utf8.ValidString(text):
		return "it has bytes that are not quoted"
	}
	return ""
}

// Telling is what is wrong with the text of an error about key, of one of those that it
// wraps, or of a verb of package fmt; "" if nothing is.
func Telling(err error, key string) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if why := tells(text); why != "" {
		return why
	}
	if len(key) > 64 && strings.Contains(text, strings.Trim(strconv.Quote(key[:65]), `"`)) {
		return "it has more than 64 bytes of the key"
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if formatted := fmt.Sprintf(verb, err); secret.MatchString(formatted) {
			return verb + " tells " + secret.FindString(formatted)
		}
	}
	switch of := err.(type) {
	case interface{ Unwrap() error }:
		return Telling(of.Unwrap(), key)
	case interface{ Unwrap() []error }:
		for _, one := range of.Unwrap() {
			if why := Telling(one, key); why != "" {
				return why
			}
		}
	}
	return ""
}

// discreet is a locker whose errors are looked through.
type discreet struct {
	Locker
	t testing.TB
}

func (l discreet) look(key string, err error) error {
	if why := Telling(err, key); why != "" {
		l.t.Errorf("%v: %s", err, why)
	}
	return err
}

func (l discreet) Do(ctx context.Context, key string, f func(context.Context) error, c ...holdfast.LockOption) error {
	return l.look(key, l.Locker.Do(ctx, key, f, c...))
}

func (l discreet) Lock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	lease, err := l.Locker.Lock(ctx, key, c...)
	return lease, l.look(key, err)
}

func (l discreet) TryLock(ctx context.Context, key string, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	lease, err := l.Locker.TryLock(ctx, key, c...)
	return lease, l.look(key, err)
}

func (l discreet) TryLockFor(ctx context.Context, key string, wait time.Duration, c ...holdfast.LockOption) (*holdfast.Lease, error) {
	lease, err := l.Locker.TryLockFor(ctx, key, wait, c...)
	return lease, l.look(key, err)
}

func (l discreet) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	s, err := l.Locker.Inspect(ctx, key)
	return s, l.look(key, err)
}

func (l discreet) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return func(yield func(holdfast.Status, error) bool) {
		for s, err := range l.Locker.Locks(ctx, prefix) {
			if !yield(s, l.look(prefix, err)) {
				return
			}
		}
	}
}

func (l discreet) ForceUnlock(ctx context.Context, key string) (bool, error) {
	held, err := l.Locker.ForceUnlock(ctx, key)
	return held, l.look(key, err)
}

func (l discreet) Close() error { return l.look("", l.Locker.Close()) }

// discreetLog is a logger whose lines are looked through, as text and as JSON. People find all of
// them by one word.
func discreetLog(t testing.TB) *slog.Logger {
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	return slog.New(both{slog.NewTextHandler(reader{t}, all), slog.NewJSONHandler(reader{t}, all)})
}

type reader struct{ t testing.TB }

func (r reader) Write(line []byte) (int, error) {
	if why := tells(string(line)); why != "" {
		r.t.Errorf("%s: %s", line, why)
	}
	if !strings.Contains(string(line), `msg="holdfast: `) && !strings.Contains(string(line), `"msg":"holdfast: `) {
		r.t.Errorf("%s: does not begin with holdfast", line)
	}
	return len(line), nil
}

type both [2]slog.Handler

func (b both) Enabled(context.Context, slog.Level) bool { return true }

func (b both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(b[0].Handle(ctx, r), b[1].Handle(ctx, r))
}

func (b both) WithAttrs(as []slog.Attr) slog.Handler {
	return both{b[0].WithAttrs(as), b[1].WithAttrs(as)}
}

func (b both) WithGroup(name string) slog.Handler {
	return both{b[0].WithGroup(name), b[1].WithGroup(name)}
}
