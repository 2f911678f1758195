package lockclient

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// Credentials makes f give the user and the password of each connection of o when it is made;
// its context ends with the time of a dial. Connections to Sentinels take those of o.Sentinel:
// rueidis asks for both in the same way, and only the address tells the two apart. Call it last.
func Credentials(o *rueidis.ClientOption, f func(context.Context) (username, password string, err error)) {
	sentinel, timeout := o.Sentinel, o.Dialer.Timeout
	o.AuthCredentialsFn = func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if _, is := of.Address.(sentinelAddr); is {
			return rueidis.AuthCredentials{Username: sentinel.Username, Password: sentinel.Password}, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		username, password, err := f(ctx)
		return rueidis.AuthCredentials{Username: username, Password: password}, err
	}
	if o.Sentinel.MasterSet == "" {
		return
	}
	o.Sentinel.Dialer.Resolver = ofSentinel
	dial := o.DialCtxFn
	if dial == nil {
		dial = Dialer("tcp")
	}
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, d, c)
		if err == nil && d.Resolver == ofSentinel {
			conn = sentinelConn{conn}
		}
		return conn, err
	}
}

// ofSentinel marks the dialer of Sentinels; it resolves as none does.
var ofSentinel = &net.Resolver{}

// Dialer returns what dials a network as rueidis dials TCP.
func Dialer(network string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		if c != nil {
			return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, network, address)
		}
		return d.DialContext(ctx, network, address)
	}
}

type sentinelConn struct{ net.Conn }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

type sentinelAddr struct{ net.Addr }
