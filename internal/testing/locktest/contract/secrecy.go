package contract

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

var secrecyCases = []testCase{
	{"Logger_IsSilentByDefault", servers, locktest.Options{Lease: 9 * time.Second}, logSilent},
	{"Secrets_AreInNoErrorAndNoLog", servers | ofOneHolder, defaults, secrets},
}

// logSilent loses a lease while every way to log by default is watched.
func logSilent(c *harness) {
	var logged redistest.Log
	before, flags := slog.Default(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	}()
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.away()
	c.ended(l, holdfast.ErrLost)
	require.Error(c.T, locktest.ErrOf(c.Locker.TryLock(c.ctx, "k")))
	_ = c.Locker.Close()
	require.Empty(c.T, logged.String())
}

// secrets goes through the errors, and through the logs and careless prints of values, with an owner and an
// odd key to be found in them. Those of all other cases are looked through as well; see [Kind.Open].
func secrets(c *harness) {
	key := "first\nline \xff " + strings.Repeat("k", 50) + "canary-tail"
	var logs redistest.Log
	l := c.Kind.Open(c.T, c.Client, locktest.Options{Lease: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	var owners, texts []string
	var errs []error
	note := func(err error) {
		c.T.Helper()
		require.Error(c.T, err)
		errs = append(errs, err)
	}
	formatted := func(values ...any) {
		for _, v := range values {
			texts = append(texts, fmt.Sprintf("%v %+v %#v", v, v, v))
			for _, log := range []slog.Handler{slog.NewTextHandler(&logs, nil), slog.NewJSONHandler(&logs, nil)} {
				slog.New(log).Info("value", "v", v)
			}
		}
	}
	take := func(key string) *holdfast.Lease {
		lease := locktest.Lock(c.T, l, c.ctx, key)
		client, _, _ := strings.Cut(lease.Owner(), ":")
		owners = append(owners, client)
		status := locktest.Must(c.Other.Inspect(c.ctx, key))(c.T)
		require.NotEmpty(c.T, status.Owner)
		formatted(lease, *lease, status, &status, holdfast.FixedLease(time.Second))
		return lease
	}
	everything := func(key string) {
		note(locktest.ErrOf(l.TryLock(c.ctx, key)))
		note(locktest.ErrOf(l.TryLockFor(c.ctx, key, 20*time.Millisecond)))
		short, cancel := context.WithTimeout(c.ctx, 20*time.Millisecond)
		defer cancel()
		note(locktest.ErrOf(l.Lock(short, key)))
	}
	operator := func(key string) {
		note(locktest.ErrOf(l.Inspect(c.ctx, key)))
		note(locktest.ErrOf(l.ForceUnlock(c.ctx, key)))
	}

	note(locktest.ErrOf(l.TryLock(c.ctx, "")))
	note(locktest.ErrOf(l.TryLock(c.ctx, strings.Repeat(key, 20))))
	locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	everything("theirs")
	c.Server.Do(c.T, "SET", c.Name("text"), "not a lock")
	everything("text")
	operator("text")

	forced := take(key)
	c.force(l, key)
	note(forced.Err())
	note(context.Cause(forced.Bind(c.ctx)))
	note(forced.Unlock(c.ctx))
	note(forced.Unlock(c.ctx))
	deleted := take(key)
	c.Server.Do(c.T, "DEL", c.Name(key))
	<-deleted.Done()
	note(deleted.Err())

	formatted(l, c.Kind)
	held := take(key)
	c.Proxy.SwallowReply(1, locktest.Is("acquire"))
	note(locktest.ErrOf(l.TryLock(c.ctx, "unanswered")))
	c.away()
	everything(key)
	operator(key)
	<-held.Done()
	note(held.Unlock(c.ctx))
	_ = l.Close()
	note(locktest.ErrOf(l.TryLock(c.ctx, key)))

	logged := logs.String()
	require.Contains(c.T, logged, "lease lost")
	require.Contains(c.T, logged, "renewal failed")
	for _, err := range errs {
		require.Empty(c.T, locktest.Telling(err, key), "%v", err)
	}
	for _, secret := range append(owners, "canary-tail", "first\nline", "\xff") {
		for _, s := range append(texts, logged) {
			require.NotContains(c.T, s, secret)
		}
	}
}
