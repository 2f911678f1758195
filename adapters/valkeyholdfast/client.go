package valkeyholdfast

import (
	"fmt"
	"slices"

	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/lockclient"
)

// NewClient returns a client for lockers, which connects as valkey.NewClient(o) does. One is
// enough for all lockers of a program. The caller closes it, after the lockers. It may be used
// concurrently.
//
// AuthCredentialsFn is asked for each new connection, so a changed password needs no new client.
// Its RefreshAfter is ignored: a connection keeps the credentials with which it was made. If the
// server closes it when they expire, the client makes another: leases and waits outlive that,
// while a TryLock or Unlock that is under way may fail with [holdfast.ErrUnknown].
//
// NewClient connects. It fails with [holdfast.ErrUnavailable] if no server answers; with
// [holdfast.ErrInvalidArgument] on an option that is refused, which the error names; and with the
// server's own words if it refuses, as for a wrong password. Nothing is left open then.
func NewClient(o valkey.ClientOption) (rueidis.Client, error) {
	opt, err := ClientOption(o)
	if err != nil {
		return nil, err
	}
	client, err := lockclient.New(opt)
	if err != nil {
		return nil, fmt.Errorf("valkeyholdfast: %w", err)
	}
	return client, nil
}

// ClientOption returns the options of [NewClient], to change some of them, or for
// multilock.Open. It does no I/O.
//
// It fails with [holdfast.ErrInvalidArgument] on an option that is refused, and names it.
func ClientOption(o valkey.ClientOption) (rueidis.ClientOption, error) {
	switch {
	case len(o.InitAddress) == 0:
		return rueidis.ClientOption{}, errs.Invalid("valkeyholdfast: InitAddress is empty")
	case o.ReplicaOnly:
		return rueidis.ClientOption{}, errs.Invalid("valkeyholdfast: ReplicaOnly has a lock ask replicas, and only a master can give one")
	case o.Standalone.EnableRedirect:
		return rueidis.ClientOption{}, errs.Invalid("valkeyholdfast: Standalone.EnableRedirect has not been tested with locks, which find a master that has moved on their own")
	}
	opt := rueidis.ClientOption{
		InitAddress: slices.Clone(o.InitAddress), ShuffleInit: o.ShuffleInit, ForceSingleClient: o.ForceSingleClient,
		Sentinel: rueidis.SentinelOption(o.Sentinel), ClusterOption: rueidis.ClusterOption(o.ClusterOption),
		TLSConfig: o.TLSConfig, Dialer: o.Dialer, DialFn: o.DialFn, DialCtxFn: o.DialCtxFn, ConnWriteTimeout: o.ConnWriteTimeout,
		Username: o.Username, Password: o.Password, SelectDB: o.SelectDB, AlwaysRESP2: o.AlwaysRESP2,
		ClientName: o.ClientName, ClientSetInfo: o.ClientSetInfo, ClientNoEvict: o.ClientNoEvict,
	}
	opt.ClusterOption.MaxMovedRedirections = 0
	if len(o.Standalone.ReplicaAddress) > 0 { // valkey-go then takes the first address for the one server
		opt.InitAddress, opt.ForceSingleClient = opt.InitAddress[:1], true
	}
	if f := o.AuthCredentialsFn; f != nil {
		opt.AuthCredentialsFn = func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			c, err := f(valkey.AuthCredentialsContext(of))
			return rueidis.AuthCredentials{Username: c.Username, Password: c.Password}, err
		}
	}
	lockclient.Suit(&opt)
	return opt, nil
}
