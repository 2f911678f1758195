package rlock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/rlock"
)

const validFor = time.Hour

// requireTLSRefusal requires an error that waiting cannot cure, and none of ours.
func requireTLSRefusal(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, wire.Refused, wire.OutcomeOf(err), "%v", err)
	require.NotErrorIs(t, err, holdfast.ErrUnavailable)
	require.NotErrorIs(t, err, holdfast.ErrUnknown)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	s := redistest.StartTLS(t, ca, ca.Certificate(time.Now().Add(validFor), "127.0.0.1", "localhost"))
	open := func() *rlock.Locker {
		return userLocker(t, s.Client(t, s.Option(s.Config())), holdfast.WithLease(30*time.Second))
	}
	here, there := open(), open()
	ctx := locktest.Bounded(t)
	lease := locktest.Lock(t, here, ctx, "k")
	until := lease.Deadline()
	woken := locktest.GoLock(there, ctx, "k")
	locktest.Await(t, func() bool { return lease.Deadline().After(until) }, "not renewed")
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, locktest.Got(t, woken).Unlock(ctx))
}

// A server whose certificate is not good is refused by new clients, and by lockers that
// meet it when they connect again, with the reason.
func TestTLS_ServerIsNotTrusted(t *testing.T) {
	t.Parallel()
	ca, later := redistest.NewCA(t), time.Now().Add(validFor)
	for name, c := range map[string]struct {
		cert tls.Certificate
		is   any
	}{
		"wrong name":    {ca.Certificate(later, "redis.example"), new(x509.HostnameError)},
		"expired":       {ca.Certificate(time.Now().Add(-time.Minute), "127.0.0.1"), new(x509.CertificateInvalidError)},
		"of another CA": {redistest.NewCA(t).Certificate(later, "127.0.0.1"), new(x509.UnknownAuthorityError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartTLS(t, ca, ca.Certificate(later, "127.0.0.1"))
			l := locktest.Opened(rlock.New(s.Client(t, s.Option(s.Config()))))(t)
			held := locktest.Lock(t, l, t.Context(), "k")

			s.RestartWith(c.cert)
			refused := func(err error) {
				t.Helper()
				requireTLSRefusal(t, err)
				require.ErrorAs(t, err, new(*tls.CertificateVerificationError))
				require.ErrorAs(t, err, c.is)
			}
			options := rueidis.ClientOption{DisableCache: true}
			s.Option(s.Config())(&options)
			refused(locktest.ErrOf(rueidis.NewClient(options)))
			locktest.Await(t, func() bool { // the first call may meet the end of the old connection
				return wire.OutcomeOf(locktest.ErrOf(l.TryLock(t.Context(), "other"))) == wire.Refused
			})
			refused(locktest.ErrOf(l.TryLock(t.Context(), "other")))
			refused(locktest.ErrOf(l.Lock(t.Context(), "other")))
			refused(held.Unlock(t.Context()))
		})
	}
}

// A server refuses a client without a certificate of its authority, with the reason. In TLS 1.3 it does so
// after the client's first command, and the client may see only the end of the connection.
func TestTLS_ClientIsNotTrusted(t *testing.T) {
	t.Parallel()
	ca, later := redistest.NewCA(t), time.Now().Add(validFor)
	for name, c := range map[string]struct {
		version uint16
		certs   []tls.Certificate
		alerts  string
	}{
		"no certificate":             {tls.VersionTLS13, nil, "tls: certificate required"},
		"no certificate, in TLS 1.2": {tls.VersionTLS12, nil, "tls: handshake failure"},
		"of another CA":              {tls.VersionTLS13, []tls.Certificate{redistest.NewCA(t).Certificate(later)}, "tls: unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartTLS(t, ca, ca.Certificate(later, "127.0.0.1"))
			config := s.Config()
			config.MaxVersion, config.Certificates = c.version, c.certs
			s.Do(t, "CONFIG", "SET", "tls-auth-clients", "no")
			l := locktest.Opened(rlock.New(s.Client(t, s.Option(config))))(t)
			require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))

			s.Do(t, "CONFIG", "SET", "tls-auth-clients", "yes")
			s.Do(t, "CLIENT", "KILL", "TYPE", "normal")
			options := rueidis.ClientOption{DisableCache: true}
			s.Option(config)(&options)
			var err error
			locktest.Await(t, func() bool {
				_, err = rueidis.NewClient(options)
				require.Error(t, err)
				return strings.Contains(err.Error(), c.alerts)
			})
			requireTLSRefusal(t, err)
			locktest.Await(t, func() bool {
				_, err = l.TryLock(t.Context(), "k")
				require.Error(t, err)
				return strings.Contains(err.Error(), c.alerts)
			})
			requireTLSRefusal(t, err)
		})
	}
}
