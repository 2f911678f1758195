package locktest

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var secrecyCases = []contractCase{
	{"Logger_IsSilentByDefault", Options{Lease: time.Second}, logSilent},
	{"Secrets_AreInNoErrorAndNoLog", defaults, secrets},
}

// logText collects what is logged.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *logText) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logText) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logSilent loses a lease while every way to log by default is watched.
func logSilent(c *contractRig) {
	var said logText
	before, flags := slog.Default(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	}()
	l := lock(c.t, c.locker, c.ctx, "k")
	c.away()
	c.ended(l, holdfast.ErrLost)
	_, err := c.locker.TryLock(c.ctx, "k")
	require.Error(c.t, err)
	_ = c.locker.Close()
	require.Empty(c.t, said.String())
}

// secrets goes through the errors, and through the logs, with a password, an
// owner and a key to be found in them.
func secrets(c *contractRig) {
	const password, lease = "canary-password", time.Second
	key := "first\nline " + strings.Repeat("k", 53) + "canary-tail"
	user := func(rules ...string) {
		c.server.Do(c.t, append([]string{"ACL", "SETUSER", "canary-user"}, rules...)...)
	}
	user("on", ">"+password, "~*", "&*", "+@all")
	var logs logText
	open := func() holdfast.Locker {
		client := c.server.Client(c.t, func(o *rueidis.ClientOption) {
			o.InitAddress, o.Username, o.Password = []string{c.proxy.Addr()}, "canary-user", password
		})
		return c.kind.Open(c.t, client, Options{Lease: lease, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	}
	l := open()
	var owners []string
	var errs []error
	note := func(err error) {
		c.t.Helper()
		require.Error(c.t, err)
		errs = append(errs, err)
	}
	take := func(key string) *holdfast.Lease {
		lease := lock(c.t, l, c.ctx, key)
		client, _, _ := strings.Cut(lease.Owner(), ":")
		owners = append(owners, client)
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
	lock(c.t, c.other, c.ctx, "theirs")
	everything("theirs")
	c.server.Do(c.t, "SET", "text", "not a lock")
	everything("text")
	operator("text")

	forced := take(key)
	inner := forced.Bind(c.ctx)
	_, err := l.ForceUnlock(c.ctx, key)
	require.NoError(c.t, err)
	note(forced.Err())
	note(context.Cause(inner))
	note(forced.Unlock(c.ctx))
	note(forced.Unlock(c.ctx))

	deleted := take(key)
	c.server.Do(c.t, "DEL", key)
	<-deleted.Done()
	note(deleted.Err())

	refused := take(key)
	user("-evalsha")
	everything("k")
	operator("k")
	<-refused.Done()
	note(refused.Err())
	user("+evalsha")

	take(key)
	c.proxy.SwallowReply(1, is("acquire"))
	note(try("unanswered"))
	user("resetpass", ">changed")
	c.proxy.Cut()
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
	require.Contains(c.t, said, "lease lost")
	require.Contains(c.t, said, "renewal failed")
	texts := []string{said}
	for _, err := range errs {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err))
	}
	for _, secret := range append(owners, password, "canary-user:", "canary-tail", "redis://", "first\nline") {
		for _, s := range texts {
			require.NotContains(c.t, s, secret)
		}
	}
}
