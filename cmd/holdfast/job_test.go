package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Two crontabs start a short job one after the other: it runs once, whatever the flags of the wait.
func TestRunAtLeastRunsAShortJobOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, how := range [][]string{{"--try"}, {"--wait", "30s"}, {"--fair", "--wait", "30s"}} {
		p := started(t, s.Addr(), append(how, "--at-least", "1m")...)
		p.write("exit 4").exits(4)
		requireFree(t, s, key)
		out, text := do(t, statusNotAcquired, s.Addr(), "", ran(append(how, "--at-least", "1m")...)...)
		require.Empty(t, out)
		require.Regexp(t, `^holdfast: lock "`+key+names.Due+`": not acquired: held by .*; the job has begun less than 1m0s ago\n$`, text)
		require.InDelta(t, 60_000, number(t, s, "PTTL", key+names.Due), 20_000)
		s.Do(t, "DEL", key+names.Due)
	}
	p := started(t, s.Addr(), "--try", "--at-least", "6s")
	p.write("exit 0").exits(0)
	eventually(t, func() bool { return number(t, s, "EXISTS", key+names.Due) == 0 }) // by itself
}

// A job that has not begun does not count as done, but one that another does.
func TestRunAtLeastOfAJobThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	do(t, statusNotRunnable, s.Addr(), "", "run", "--try", "--at-least", "1m", key, "--", t.TempDir())
	require.Zero(t, number(t, s, "EXISTS", key+names.Due))

	lease := locked(t, newLocker(t, s), key)
	p := start(t, s.Addr(), ran("--fair", "--wait", "50s", "--at-least", "1m")...)
	awaitQueue(t, s, 1)
	require.EqualValues(t, 1, number(t, s, "EXISTS", key+names.Due))
	p.signal(syscall.SIGTERM)
	p.exits(128 + 15)
	require.Zero(t, number(t, s, "EXISTS", key+names.Due))

	start(t, s.Addr(), ran("--try", "--at-least", "1m")...).exits(statusNotAcquired)
	require.EqualValues(t, 1, number(t, s, "EXISTS", key+names.Due))
	require.NoError(t, lease.Unlock(t.Context()))
}

// Redis answers when the time of --at-least is over: another machine may have run the job.
func TestRunAtLeastIsOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	late := sync.OnceFunc(func() {
		time.AfterFunc(time.Second, func() {
			proxy.OnRequest(nil)
			proxy.Release()
		})
	})
	proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if !slices.Contains(cmd, key) {
			return redistest.Pass
		}
		late()
		return redistest.Hold
	})
	out, text, status := once(t, proxy.Addr(), "", ran("--try", "--at-least", "100ms")...)
	require.Empty(t, out)
	require.Equal(t, statusAway, status, text)
	requireFree(t, s, key)
}

// The command gets TERM under the lock, and the status tells.
func TestRunMaxHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := started(t, s.Addr(), "--max-hold", "9s", "--kill-after", "1m")
	p.says("got terminated")
	_, err := newLocker(t, s).TryLock(t.Context(), key)
	require.ErrorIs(t, err, holdfast.ErrNotAcquired)
	p.write("exit 0").exits(statusLost)
	require.Equal(t, "holdfast: the command has run for 9s, as long as --max-hold allows; ending the command\n", p.err.String())
	requireFree(t, s, key)

	p = started(t, s.Addr(), "--max-hold", "9s", "--kill-after", "50ms")
	p.exits(statusLost)
	requireFree(t, s, key)
}

// What a locker warns of is on standard error, and why a lease was lost.
func TestRunTellsWhyRenewalsFail(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	p := started(t, proxy.Addr(), "--lease", "9s")
	proxy.Refuse(true)
	proxy.Cut()
	p.says("got terminated")
	p.write("exit 0").exits(statusLost)
	text := p.err.String()
	require.Regexp(t, `(?m)^holdfast: renewal failed; leases: 1; error: redis unavailable: .*refused`, text)
	require.Regexp(t, `(?m)^holdfast: lease of "`+key+`": lease lost: the lease ran out; its last renewal: redis unavailable: .*; ending the command$`, text)
	require.Equal(t, 1, strings.Count(text, "ending the command"), text)
	for line := range strings.Lines(text) {
		require.True(t, strings.HasPrefix(line, "holdfast: "), line)
	}
}

// Nobody reads: writes are dropped, and nobody waits for long.
func TestUnread(t *testing.T) {
	reader, writer := io.Pipe()
	u := newUnread(writer)
	for range 2 * cap(u.lines) {
		_, err := fmt.Fprintln(u, "line")
		require.NoError(t, err)
	}
	u.flush()
	lines := bufio.NewScanner(reader)
	for range cap(u.lines) {
		require.True(t, lines.Scan())
		require.Equal(t, "line", lines.Text())
	}
	go func() {
		for lines.Scan() { // the one that was under way
		}
	}()
	u.lines <- nil
	<-u.written
	require.NoError(t, writer.Close())
}

func TestWarnings(t *testing.T) {
	var to strings.Builder
	log := slog.New(warnings{&to})
	log.Info("holdfast: nothing to see")
	log.Warn("holdfast: lease lost", "key", "k") // run tells it itself
	log.Warn("holdfast: undo failed", "keys", 1, "after", time.Second)
	log.Warn("pubsub: connection lost")
	require.Equal(t, "holdfast: undo failed; keys: 1; after: 1s\nholdfast: pubsub: connection lost\n", to.String())
}
