package goredisholdfast_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/goredisholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/lockclienttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// A program has the options of its client of go-redis, and locks on the same server.
func ExampleNewClient() {
	opts := &redis.Options{Addr: "10.0.0.7:6379", Username: "shop", Password: "secret"}
	rdb := redis.NewClient(opts)
	defer rdb.Close()

	client, err := goredisholdfast.NewClient(opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	locker, err := rlock.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	err = locker.Do(context.Background(), "sku:42", func(ctx context.Context) error {
		return rdb.Decr(ctx, "stock:42").Err()
	})
	fmt.Println(err)
}

// open returns a locker on the client that opts make.
func open[O goredisholdfast.Options](t *testing.T, opts O, more ...holdfast.Option) *rlock.Locker {
	t.Helper()
	return lockclienttest.Open(t, func() (rueidis.Client, error) { return goredisholdfast.NewClient(opts) }, more...)
}

func TestServer_TLSAndACL(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	s := redistest.StartTLS(t, ca, ca.Certificate(time.Now().Add(time.Hour), "127.0.0.1"))
	lockclienttest.User(t, s.Server, ">secret")
	s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval")
	opts := &redis.Options{
		Addr: fmt.Sprintf("127.0.0.1:%d", s.Port()), TLSConfig: s.Config(), Username: "shop", Password: "secret", DB: 3,
		ClientName: "locks", IdentitySuffix: "shop", ClientSideCacheConfig: &redis.ClientSideCacheConfig{}, PoolSize: 7,
	}
	lockclienttest.Excludes(t, open(t, opts), open(t, &redis.UniversalOptions{Addrs: []string{opts.Addr}, TLSConfig: opts.TLSConfig, Username: "shop", Password: "secret", DB: 3}), "k")
	lockclienttest.Suits(t, s.Server)

	// A Dialer of the program's own makes TLS by itself.
	dialled := *opts
	dialled.ClientName = "dialled"
	dialled.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		return (&tls.Dialer{Config: opts.TLSConfig}).DialContext(ctx, network, address)
	}
	lockclienttest.Excludes(t, open(t, &dialled), open(t, opts), "k")
	rdb := redis.NewClient(opts)
	lockclienttest.Excludes(t, open(t, rdb.Options()), open(t, opts), "k")
	require.NoError(t, rdb.Close())
}

func TestServer_UnixSocketAndRESP2(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, "--unixsocket", socket)
	lockclienttest.Excludes(t, open(t, &redis.Options{Addr: socket}), open(t, &redis.Options{Network: "unix", Addr: socket, Protocol: 2}), "k")
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s, addrs := lockclienttest.Sentinels(t)
	// The Sentinels do not know the user of the provider, nor the servers that of the Sentinels.
	asked := new(atomic.Int32)
	provider := func() (string, string) { asked.Add(1); return "shop", "secret" }
	opts := &redis.FailoverOptions{SentinelAddrs: addrs, MasterName: redistest.MasterSet, SentinelUsername: "watch", SentinelPassword: "seen",
		CredentialsProvider: provider, ClientName: "locks"}
	one := open(t, opts)
	other := open(t, &redis.UniversalOptions{Addrs: addrs, MasterName: redistest.MasterSet, SentinelUsername: "watch", SentinelPassword: "seen",
		Username: "shop", Password: "secret", RouteByLatency: true})
	lockclienttest.Excludes(t, one, other, "k")
	require.NotEmpty(t, lockclienttest.Connections(t, s.Master(), "locks"))
	require.NotEmpty(t, lockclienttest.Connections(t, s.Sentinels()[0], "locks"), "the first Sentinel is asked first")

	was := asked.Load()
	old := s.KillMaster()
	s.AwaitMaster(t, old)
	lockclienttest.Excludes(t, one, other, "k")
	require.Greater(t, asked.Load(), was)
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	var addrs []string
	for _, s := range c.Masters(t) {
		lockclienttest.User(t, s, ">secret")
		addrs = append(addrs, s.Addr())
	}
	opts := &redis.ClusterOptions{Addrs: addrs[:1], Username: "shop", Password: "secret", ClientName: "locks", ReadOnly: true}
	rdb := redis.NewClusterClient(opts)
	require.NoError(t, rdb.Set(t.Context(), "stock", 1, 0).Err())
	require.NoError(t, rdb.Close())
	lockclienttest.Excludes(t, open(t, opts), open(t, &redis.UniversalOptions{Addrs: addrs, Username: "shop", Password: "secret"}), "a", "b", "c", "d")
	for _, s := range c.Masters(t) {
		require.NotEmpty(t, lockclienttest.Connections(t, s, "locks"))
	}

	_, err := goredisholdfast.NewClient(&redis.ClusterOptions{Addrs: []string{redistest.Start(t).Addr()}})
	require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	require.ErrorContains(t, err, "is no Redis Cluster")
}

// docs/go-redis.md says how many connections a client has.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	opts := &redis.Options{Addr: s.Addr(), ClientName: "locks", PoolSize: 64, MinIdleConns: 8}
	locker := open(t, opts)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for j := range 50 {
				require.NoError(t, locker.Do(t.Context(), fmt.Sprint(i, " ", j), func(context.Context) error { return nil }))
			}
		})
	}
	all.Wait()
	require.Len(t, lockclienttest.Connections(t, s, "locks"), 1)

	opts.ClientName = "other"
	lease := redistest.Must(open(t, opts).Lock(t.Context(), "k"))(t)
	waiting := make(chan error, 1)
	go func() { waiting <- locker.Do(t.Context(), "k", func(context.Context) error { return nil }) }()
	require.Eventually(t, func() bool { return len(lockclienttest.Connections(t, s, "locks")) == 2 }, redistest.Patience, time.Millisecond)
	require.NoError(t, lease.Unlock(t.Context()))
	require.NoError(t, <-waiting)
}

// stream is a provider that streams, as those of go-redis do.
type stream struct {
	username, password string
	err                error
	listeners          atomic.Int32
}

func (s *stream) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	if s.err != nil {
		return nil, nil, s.err
	}
	s.listeners.Add(1)
	now := auth.NewBasicCredentials(s.username, s.password)
	l.OnNext(now)
	return now, func() error { s.listeners.Add(-1); return errors.New("of no matter") }, nil
}

// latest streams what is newest.
type latest struct{ password *atomic.Value }

func (l latest) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return (&stream{username: "shop", password: l.password.Load().(string)}).Subscribe(to)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*redis.Options, *atomic.Value){
		"CredentialsProvider": func(o *redis.Options, p *atomic.Value) {
			o.CredentialsProvider = func() (string, string) { return "shop", p.Load().(string) }
		},
		"CredentialsProviderContext": func(o *redis.Options, p *atomic.Value) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "shop", p.Load().(string), nil }
		},
		"StreamingCredentialsProvider": func(o *redis.Options, p *atomic.Value) { o.StreamingCredentialsProvider = latest{p} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockclienttest.Rotates(t, func(s *redistest.Server, password *atomic.Value, more ...holdfast.Option) *rlock.Locker {
				opts := &redis.Options{Addr: s.Addr()}
				set(opts, password)
				return open(t, opts, more...)
			})
		})
	}
}

// A client that cannot be made says why, and leaves nothing open.
func TestNewClient_Fails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lockclienttest.User(t, s, ">secret")
	sealed := errors.New("the vault is sealed")
	fails := func(opts *redis.Options) error {
		t.Helper()
		client, err := goredisholdfast.NewClient(opts)
		require.Nil(t, client)
		require.ErrorContains(t, err, "goredisholdfast: ")
		return err
	}
	require.ErrorIs(t, fails(&redis.Options{Addr: "127.0.0.1:1"}), holdfast.ErrUnavailable)
	refusal := fails(&redis.Options{Addr: s.Addr(), Username: "shop", Password: "wrong"})
	require.ErrorContains(t, refusal, "WRONGPASS")
	require.NotErrorIs(t, refusal, holdfast.ErrUnavailable)
	require.ErrorIs(t, fails(&redis.Options{Addr: s.Addr(), StreamingCredentialsProvider: &stream{err: sealed}}), sealed)
	require.ErrorIs(t, fails(&redis.Options{Addr: s.Addr(), CredentialsProviderContext: func(context.Context) (string, string, error) {
		return "", "", sealed
	}}), sealed)
	require.ErrorIs(t, fails(&redis.Options{Addr: s.Addr(), Limiter: limiter{}}), holdfast.ErrInvalidArgument)
	require.Eventually(t, func() bool { return len(lockclienttest.Connections(t, s, "")) == 0 }, redistest.Patience, time.Millisecond)
}
