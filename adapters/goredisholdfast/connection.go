package goredisholdfast

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/holdfast-go/holdfast/internal/lockclient"
)

// dialer returns what dials in place of rueidis; nil: nothing does. A Dialer of go-redis makes
// TLS by itself, if it does at all.
func dialer(o *redis.Options, path bool) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	network := cmp.Or(o.Network, "tcp")
	if o.Network == "" && path {
		network = "unix"
	}
	switch {
	case o.Dialer != nil:
		return func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, d.Timeout)
			defer cancel()
			return o.Dialer(ctx, network, address)
		}
	case network == "tcp":
		return nil
	}
	return lockclient.Dialer(network)
}

// provider returns what gives the credentials of each connection, by the precedence of
// go-redis; nil: they are fixed.
func provider(o *redis.Options) func(context.Context) (username, password string, err error) {
	switch {
	case o.StreamingCredentialsProvider != nil:
		return func(context.Context) (username, password string, err error) {
			now, unsubscribe, err := o.StreamingCredentialsProvider.Subscribe(deaf{})
			if err != nil {
				return "", "", err
			}
			if unsubscribe != nil { // nil if the credentials never change
				_ = unsubscribe() // no harm if it fails: deaf needs nothing
			}
			username, password = login(now.BasicAuth())
			return username, password, nil
		}
	case o.CredentialsProviderContext != nil:
		return func(ctx context.Context) (username, password string, err error) {
			username, password, err = o.CredentialsProviderContext(ctx)
			username, password = login(username, password)
			return username, password, err
		}
	case o.CredentialsProvider != nil:
		return func(context.Context) (username, password string, err error) {
			username, password = login(o.CredentialsProvider())
			return username, password, nil
		}
	}
	return nil
}

// login is what go-redis logs in with: nothing without a password.
func login(username, password string) (string, string) {
	if password == "" {
		return "", ""
	}
	return username, password
}

// deaf subscribes for the credentials of the moment only.
type deaf struct{}

func (deaf) OnNext(auth.Credentials) {}
func (deaf) OnError(error)           {}
