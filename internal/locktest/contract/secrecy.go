package contract

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var secrecyCases = []testCase{
	{"Logger_IsSilentByDefault", Options{Lease: 2 * time.Second}, logSilent},
	{"Secrets_AreInNoErrorAndNoLog", defaults, secrets},
}

// logSilent loses a lease while every way to log by default is watched.
func logSilent(c *harness) {
	var said redistest.Log
	before, flags := slog.Default(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	}()
	l := Lock(c.T, c.Locker, c.ctx, "k")
	c.away()
	c.ended(l, holdfast.ErrLost)
	_, err := c.Locker.TryLock(c.ctx, "k")
	require.Error(c.T, err)
	_ = c.Locker.Close()
	require.Empty(c.T, said.String())
}

// secrets goes through the errors, and through the logs, with a password, an
// owner and a key to be found in them.
func secrets(c *harness) {
	const lease = time.Second
	key := "first\nline \xff " + strings.Repeat("k", 50) + "canary-tail"
	user := func(rules ...string) {
		c.Server.Do(c.T, append([]string{"ACL", "SETUSER", "canary-user"}, rules...)...)
	}
	user("on", ">"+Password, "~*", "&*", "+@all")
	var logs redistest.Log
	patience := Patience
	l := c.Kind.Open(c.T, c.Server.Client(c.T, func(o *rueidis.ClientOption) {
		o.InitAddress, o.Username, o.Password = []string{c.Proxy.Addr()}, "canary-user", Password
	}), Options{Lease: lease, MaxOutage: &patience, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	var owners []string
	var errs []error
	note := func(err error) {
		c.T.Helper()
		require.Error(c.T, err)
		errs = append(errs, err)
	}
	var texts []string
	formatted := func(values ...any) {
		for _, v := range values {
			texts = append(texts, fmt.Sprintf("%v %+v %#v", v, v, v))
			for _, log := range []slog.Handler{slog.NewTextHandler(&logs, nil), slog.NewJSONHandler(&logs, nil)} {
				slog.New(log).Info("value", "v", v)
			}
		}
	}
	take := func(key string) *holdfast.Lease {
		lease := Lock(c.T, l, c.ctx, key)
		client, _, _ := strings.Cut(lease.Owner(), ":")
		owners = append(owners, client)
		status, err := c.Other.Inspect(c.ctx, key)
		require.NoError(c.T, err)
		require.NotEmpty(c.T, status.Owner)
		formatted(lease, *lease, status, &status, holdfast.FixedLease(time.Second))
		return lease
	}
	try := func(key string) error { _, err := l.TryLock(c.ctx, key); return err }
	everything := func(key string) {
		note(try(key))
		_, err := l.TryLockFor(c.ctx, key, 20*time.Millisecond)
		note(err)
		short, cancel := context.WithTimeout(c.ctx, 20*time.Millisecond)
		defer cancel()
		_, err = l.Lock(short, key)
		note(err)
	}
	operator := func(key string) {
		_, err := l.Inspect(c.ctx, key)
		note(err)
		_, err = l.ForceUnlock(c.ctx, key)
		note(err)
	}

	note(try(""))
	note(try(strings.Repeat(key, 20)))
	Lock(c.T, c.Other, c.ctx, "theirs")
	everything("theirs")
	c.Server.Do(c.T, "SET", c.Name("text"), "not a lock")
	everything("text")
	operator("text")

	forced := take(key)
	inner := forced.Bind(c.ctx)
	Await(c.T, func() bool { // with so short a lease, a node of a slow machine may not answer in time
		_, err := l.ForceUnlock(c.ctx, key)
		return err == nil
	})
	note(forced.Err())
	note(context.Cause(inner))
	note(forced.Unlock(c.ctx))
	note(forced.Unlock(c.ctx))

	deleted := take(key)
	c.Server.Do(c.T, "DEL", c.Name(key))
	<-deleted.Done()
	note(deleted.Err())

	refused := take(key)
	user("-evalsha")
	everything(key)
	operator(key)
	<-refused.Done()
	note(refused.Err())
	user("+evalsha")

	formatted(l, c.Kind)
	take(key)
	c.Proxy.SwallowReply(1, Is("acquire"))
	note(try("unanswered"))
	user("resetpass", ">changed")
	c.Proxy.Cut()
	everything("k")
	operator("k")
	c.away()
	everything("k")
	operator("k")
	if err := l.Close(); err != nil { // unless the lease is over already
		note(err)
	}
	note(try("k"))

	said := logs.String()
	require.Contains(c.T, said, "lease lost")
	require.Contains(c.T, said, "renewal failed")
	for _, err := range errs {
		require.Empty(c.T, Telling(err, key), "%v", err)
	}
	for _, secret := range append(owners, Password, "canary-user:", "canary-tail", "first\nline", "\xff") {
		for _, s := range append(texts, said) {
			require.NotContains(c.T, s, secret)
		}
	}
}
