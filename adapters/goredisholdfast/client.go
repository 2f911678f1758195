package goredisholdfast

import (
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/lockclient"
)

// NewClient returns a client for lockers, which connects as a client of go-redis with these
// options does. One is enough for all lockers of a program. The caller closes it, after the
// lockers. It may be used concurrently, and later changes of opts do not matter to it.
//
// redis.Options make a client of one server, ClusterOptions one of a Redis Cluster,
// FailoverOptions one of a Sentinel set, and UniversalOptions one of these, chosen as by
// redis.NewUniversalClient. The package comment says what becomes of each option.
//
// The client asks a credentials provider for each new connection, so a changed password
// needs no new client; it does not listen to a streaming one in between. A connection keeps
// the credentials with which it was made. If the server closes it when they expire, the
// client makes another: leases and waits outlive that, while a TryLock or Unlock that is
// under way may fail with [holdfast.ErrUnknown].
//
// Unlike go-redis, NewClient connects. It fails with [holdfast.ErrUnavailable] if no server
// answers; with [holdfast.ErrInvalidArgument] on an option that is refused, which the error
// names, and on ClusterOptions with one address of what is not a Redis Cluster; and with the server's
// own words if it refuses, as for a wrong password. Nothing is left open then.
func NewClient[O Options](opts O) (rueidis.Client, error) {
	o, err := ClientOption(opts)
	if err != nil {
		return nil, err
	}
	client, err := lockclient.New(o)
	if err != nil {
		return nil, fmt.Errorf("goredisholdfast: %w", err)
	}
	wanted := !o.ForceSingleClient && o.Sentinel.MasterSet == ""
	if wanted && client.Mode() != rueidis.ClientModeCluster {
		client.Close()
		return nil, errs.Invalid("goredisholdfast: %s is no Redis Cluster, or its user may not ask for CLUSTER SLOTS", strings.Join(o.InitAddress, ", "))
	}
	return client, nil
}
