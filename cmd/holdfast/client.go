package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/lockclient"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

// The variables that may hold secrets. No child gets them.
const (
	envURL              = "HOLDFAST_REDIS" // secret if it has a password
	envPassword         = "HOLDFAST_PASSWORD"
	envSentinelPassword = "HOLDFAST_SENTINEL_PASSWORD"
)

// server is where and how to reach Redis, as flags and environment say.
type server struct{ url, passwordFile, ca, cert, key, name string }

func (s *server) flags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "redis", "", "`URL` of Redis, such as redis://user@host:6379/0 or rediss://host for TLS; more hosts with ?addr=; "+
		"a Sentinel set with ?master_set=NAME (default $"+envURL+", or redis://127.0.0.1:6379)")
	f.StringVar(&s.passwordFile, "password-file", "", "`FILE` whose first line is the password, read at each dial (default $"+envPassword+")")
	f.StringVar(&s.ca, "tls-ca", "", "`FILE` with the certificates to trust (default those of the system)")
	f.StringVar(&s.cert, "tls-cert", "", "`FILE` with the client's certificate, read at each dial")
	f.StringVar(&s.key, "tls-key", "", "`FILE` with the client's key, read at each dial")
	f.StringVar(&s.name, "tls-server-name", "", "`NAME` that the certificate of each server has (default the host at which it is reached)")
}

// options returns those of a client. Its errors are of usage, and show no password.
func (s *server) options(lease time.Duration) (o rueidis.ClientOption, err error) {
	u, err := url.Parse(cmp.Or(s.url, os.Getenv(envURL), "redis://127.0.0.1:6379"))
	if err == nil {
		o, err = rueidis.ParseURL(u.String())
	}
	if err != nil { // which would repeat the URL
		return o, errors.New("the URL of Redis is not understood; it should look like redis://user@host:6379/0")
	}
	if _, given := u.User.Password(); given && s.url != "" {
		return o, errors.New("--redis: all users of this machine can read a password there; use --password-file or $" + envPassword)
	}
	for _, address := range u.Query()["addr"] { // for one that it does not understand, rueidis takes the first host
		if host, _, err := net.SplitHostPort(address); err != nil || host == "" {
			return o, errors.New("the URL of Redis has an addr= that is not HOST:PORT")
		}
	}
	for _, address := range o.InitAddress {
		_, port, _ := net.SplitHostPort(address)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return o, fmt.Errorf("the URL of Redis has an invalid port %q", port)
		}
	}
	for name := range u.Query() {
		if !slices.Contains([]string{"addr", "master_set", "db", "skip_verify"}, name) {
			return o, fmt.Errorf("the URL of Redis has the unknown parameter %q", name)
		}
	}
	o.Password = cmp.Or(os.Getenv(envPassword), o.Password)
	if err := s.secure(o.TLSConfig); err != nil {
		return o, err
	}
	o.ConnWriteTimeout, o.Dialer.Timeout = lease/4, lease/4 // or less
	o.Sentinel.Password, o.Sentinel.TLSConfig = os.Getenv(envSentinelPassword), o.TLSConfig
	lockclient.Suit(&o)
	if s.passwordFile != "" {
		password, err := readSecret("--password-file", func() (string, error) { return firstLine(s.passwordFile) })
		if err != nil {
			return o, err
		}
		user := o.Username
		lockclient.Credentials(&o, func(context.Context) (string, string, error) { return user, password.now(), nil })
	}
	return o, nil
}

// operators are for the calls of operators, a locker for each layout of keys.
type operators struct {
	fair       *fair.Locker // of rlock's too
	semaphores *semaphore.Locker
	readWrite  *rwlock.Locker
}

// with runs f with a client and operators.
func (s *server) with(ctx context.Context, f func(context.Context, rueidis.Client, operators) error) error {
	o, err := s.options(holdfast.DefaultLease)
	if err != nil {
		return err
	}
	client, err := dial(ctx, o, true)
	if err != nil {
		return err
	}
	defer client.Close()
	locks, err := fair.New(client)
	if err != nil {
		return failed(err)
	}
	defer locks.Close()                         // it holds nothing
	semaphores, err := semaphore.New(client, 1) // which counts only for locks
	if err != nil {
		return failed(err)
	}
	defer semaphores.Close()
	readWrite, err := rwlock.New(client)
	if err != nil {
		return failed(err)
	}
	defer readWrite.Close()
	return f(ctx, client, operators{locks, semaphores, readWrite})
}

func (s *server) secure(c *tls.Config) error {
	if c == nil {
		if s.ca+s.cert+s.key+s.name != "" {
			return errors.New("the flags that begin with --tls need a URL that begins with rediss://")
		}
		return nil
	}
	c.ServerName = s.name // ParseURL gives all servers the name of the first
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return fmt.Errorf("--tls-ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--tls-ca: %s has no certificate", s.ca)
		}
	}
	if s.cert+s.key != "" {
		pair, err := readSecret("--tls-cert and --tls-key", func() (*tls.Certificate, error) { return pairOf(s.cert, s.key) })
		if err != nil {
			return err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.now(), nil }
	}
	return nil
}

// dial returns a client, once Redis answers: until then it tries again, for as long as ctx
// lives, unless Redis refuses or once is set.
func dial(ctx context.Context, o rueidis.ClientOption, once bool) (rueidis.Client, error) {
	type dialed struct {
		client rueidis.Client
		err    error
	}
	err := at(o, errNoAnswer)
	for {
		done := make(chan dialed, 1)
		go func() { // may outlast ctx by the timeouts of o
			client, err := rueidis.NewClient(o)
			if err != nil && speaksNoTLS(o, err) {
				err = errNoTLS
			}
			done <- dialed{client, err}
		}()
		select {
		case d := <-done:
			if d.err == nil {
				return d.client, nil
			}
			if wire.OutcomeOf(d.err).Final() || d.err == errNoTLS {
				return nil, &failure{statusRefused, at(o, d.err)}
			}
			err = at(o, d.err)
		case <-ctx.Done():
			once = true
		}
		if once || !loop.Sleep(50*time.Millisecond, ctx.Done()) {
			return nil, failed(fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err))
		}
	}
}

// at names the servers in an error that does not name them itself.
func at(o rueidis.ClientOption, err error) error {
	if errors.As(err, new(*net.OpError)) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errNoAnswer
	}
	return fmt.Errorf("%s: %w", strings.Join(o.InitAddress, ", "), readable(err))
}

var (
	errNoAnswer = errors.New("no answer in time")
	errNoTLS    = errors.New("the server does not use TLS on this port; use redis://, not rediss://")
)

// speaksNoTLS reports whether a TLS handshake failed for that reason. Redis does not answer what it
// does not understand, so a server is asked without TLS, for nothing but a sign of life.
func speaksNoTLS(o rueidis.ClientOption, err error) bool {
	if o.TLSConfig == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(tls.RecordHeaderError)) {
		return false
	}
	for _, address := range o.InitAddress {
		conn, err := o.Dialer.Dial("tcp", address)
		if err != nil {
			continue
		}
		sign := make([]byte, 1)
		_ = conn.SetDeadline(time.Now().Add(o.Dialer.Timeout))
		_, err = conn.Write([]byte("PING\r\n"))
		if err == nil {
			_, err = conn.Read(sign)
		}
		_ = conn.Close()
		if err == nil && (sign[0] == '+' || sign[0] == '-') {
			return true
		}
	}
	return false
}
