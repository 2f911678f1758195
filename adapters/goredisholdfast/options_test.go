package goredisholdfast_test

import (
	"context"
	"crypto/tls"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/push"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/goredisholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/lockclienttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// What becomes of each option of go-redis v9.22. A new version of it has to say so here, and in
// the package comment.
var become = lockclienttest.Becomes{
	Adapter: "goredisholdfast",
	Taken: []string{
		"Network", "Addr", "Addrs", "SentinelAddrs", "MasterName", "IsClusterMode", "DB", "Dialer", "TLSConfig",
		"Username", "Password", "SentinelUsername", "SentinelPassword",
		"CredentialsProvider", "CredentialsProviderContext", "StreamingCredentialsProvider",
		"Protocol", "ClientName", "DisableIdentity", "DisableIndentity", "IdentitySuffix",
		"DialTimeout", "ReadTimeout", "WriteTimeout", "ClusterStateReloadInterval",
	},
	LeftAside: []string{
		// Repeated commands and dials.
		"MaxRetries", "MinRetryBackoff", "MaxRetryBackoff", "MaxRedirects", "DialerRetries", "DialerRetryTimeout", "DialerRetryBackoff",
		// Pools.
		"PoolFIFO", "PoolSize", "MaxConcurrentDials", "PoolTimeout", "MinIdleConns", "MaxIdleConns", "MaxActiveConns",
		"ConnMaxIdleTime", "ConnMaxLifetime", "ConnMaxLifetimeJitter",
		// Buffers and pipelines.
		"ReadBufferSize", "WriteBufferSize", "PipelineReadBufferSize", "PipelineWriteBufferSize", "PipelinePoolSize", "AutoPipelineOptions",
		// Which node gets a command that reads or has no key.
		"ReadOnly", "RouteByLatency", "RouteRandomly", "UseDisconnectedReplicas", "FailingTimeoutSeconds", "DisableRoutingPolicies", "ShardPicker",
		// Client-side caches.
		"ClientSideCacheConfig", "ClientSideCache", "ClientSideCacheStrategy",
		// Maintenance; NodeAddress is compared with what its notifications name.
		"MaintNotificationsConfig", "PushNotificationProcessor", "NodeAddress",
		"ContextTimeoutEnabled", "UnstableResp3", // the last has no effect in go-redis, either
	},
	Refused: []string{"OnConnect", "Limiter", "ReplicaOnly", "NewClient", "ClusterSlots"},
}

func TestEachOption(t *testing.T) {
	eachOption(t, redis.Options{Addr: "a:1", ReadTimeout: time.Second})
	eachOption(t, redis.ClusterOptions{Addrs: []string{"a:1"}, ReadTimeout: time.Second})
	eachOption(t, redis.FailoverOptions{SentinelAddrs: []string{"a:1"}, MasterName: "m", ReadTimeout: time.Second, SentinelPassword: "p"})
	eachOption(t, redis.UniversalOptions{Addrs: []string{"a:1"}, MasterName: "m", ReadTimeout: time.Second, SentinelPassword: "p"}, "ReadOnly", "IsClusterMode")
	eachOption(t, redis.UniversalOptions{Addrs: []string{"a:1"}, ReadTimeout: time.Second}, "SentinelUsername", "SentinelPassword")
	eachOption(t, redis.UniversalOptions{Addrs: []string{"a:1"}, IsClusterMode: true, ReadTimeout: time.Second}, "IsClusterMode", "DB", "SentinelUsername", "SentinelPassword")
}

// eachOption gives each option of base, but for some, a value.
func eachOption[T any](t *testing.T, base T, but ...string) {
	is := redistest.Must(option(&base))(t)
	filled := &redis.ClusterOptions{Addrs: []string{"a:1"}}
	require.NoError(t, redis.NewClusterClient(filled).Close()) // only go-redis can name the type of its ShardPicker
	typ := reflect.TypeFor[T]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		if !field.IsExported() || slices.Contains(but, field.Name) {
			continue
		}
		set := base
		reflect.ValueOf(&set).Elem().Field(i).Set(lockclienttest.Some(t, field.Type, redis.CSCStrategy(1), limiter{}, &stream{}, push.NewProcessor(),
			redis.NewLocalCache(redis.CacheConfig{}), filled.ShardPicker, []string{"b:2"})) // two addresses would make any a Cluster
		if field.Name == "Username" { // which goes with a password
			reflect.ValueOf(&set).Elem().FieldByName("Password").SetString("p")
		}
		becomes, err := option(&set)
		become.Option(t, field.Name, is, becomes, err)
	}
}

func option(opts any) (rueidis.ClientOption, error) {
	switch o := opts.(type) {
	case *redis.Options:
		return goredisholdfast.ClientOption(o)
	case *redis.ClusterOptions:
		return goredisholdfast.ClientOption(o)
	case *redis.FailoverOptions:
		return goredisholdfast.ClientOption(o)
	default:
		return goredisholdfast.ClientOption(opts.(*redis.UniversalOptions))
	}
}

type limiter struct{}

func (limiter) Allow() error       { return nil }
func (limiter) ReportResult(error) {}

// What suits locks is set, whatever the options say.
func TestOptions_SuitLocks(t *testing.T) {
	for _, slow := range []time.Duration{0, -1, -2, time.Hour} {
		o := redistest.Must(goredisholdfast.ClientOption(&redis.ClusterOptions{Addrs: []string{"a:1"}, ReadOnly: true, RouteRandomly: true, MaxRetries: 9,
			DialTimeout: slow, ReadTimeout: slow, WriteTimeout: slow, ClusterStateReloadInterval: slow}))(t)
		require.Equal(t, lockclienttest.Shown(rueidis.ClientOption{
			InitAddress: []string{"a:1"}, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
			RingScaleEachConn: 8, ReadBufferEachConn: 32 << 10, WriteBufferEachConn: 32 << 10,
			ConnWriteTimeout: 3 * time.Second, Dialer: net.Dialer{Timeout: 2 * time.Second},
			ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: 5 * time.Second},
		}), lockclienttest.Shown(o))
	}
	o := redistest.Must(goredisholdfast.ClientOption(&redis.FailoverOptions{SentinelAddrs: []string{"a:1"}, MasterName: "m", TLSConfig: &tls.Config{}}))(t)
	require.Equal(t, rueidis.SentinelOption{MasterSet: "m", TopologyRefreshInterval: 5 * time.Second, TLSConfig: &tls.Config{},
		Dialer: net.Dialer{Timeout: 2 * time.Second, KeepAlive: time.Second}}, o.Sentinel)
}

// Options with which go-redis has made a client are as good, and so are those of the client.
func TestOptions_OfAClient(t *testing.T) {
	opts := &redis.ClusterOptions{Addrs: []string{"a:1"}, ClientName: "shop"}
	before := redistest.Must(goredisholdfast.ClientOption(opts))(t)
	require.NoError(t, redis.NewClusterClient(opts).Close()) // fills in defaults
	after := redistest.Must(goredisholdfast.ClientOption(opts))(t)
	require.Equal(t, lockclienttest.Shown(before), lockclienttest.Shown(after))

	one := redis.NewClient(&redis.Options{Addr: "a:1", DialTimeout: time.Second})
	require.Equal(t, time.Second, redistest.Must(goredisholdfast.ClientOption(one.Options()))(t).Dialer.Timeout)
	require.NoError(t, one.Close())

	set := redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{"a:1"}, MasterName: "m"})
	_, err := goredisholdfast.ClientOption(set.Options())
	require.ErrorContains(t, err, "pass its FailoverOptions")
	require.NoError(t, set.Close())
}

func TestOptions_Refused(t *testing.T) {
	refuses := func(text string, _ rueidis.ClientOption, err error) {
		t.Helper()
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
		require.EqualError(t, err, "goredisholdfast: "+text)
	}
	refuse := func(text string, opts any) { t.Helper(); o, err := option(opts); refuses(text, o, err) }
	refuse("*redis.Options is nil", (*redis.Options)(nil))
	refuse("*redis.UniversalOptions is nil", (*redis.UniversalOptions)(nil))
	refuse("Addrs is empty", &redis.ClusterOptions{})
	refuse("SentinelAddrs or MasterName is empty", &redis.FailoverOptions{MasterName: "m"})
	refuse("SentinelAddrs or MasterName is empty", &redis.FailoverOptions{SentinelAddrs: []string{"a:1"}})
	refuse("Protocol is 4; 2 and 3 are known", &redis.Options{Protocol: 4})
	refuse("DB is 1, but a Redis Cluster has only DB 0", &redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, DB: 1})
	refuse("ReadOnly with MasterName has a lock ask replicas, and only a master can give one", &redis.UniversalOptions{MasterName: "m", ReadOnly: true})
}

// UniversalOptions make the client that they make in go-redis.
func TestOptions_Universal(t *testing.T) {
	for _, c := range []struct {
		opts     redis.UniversalOptions
		address  string
		single   bool
		sentinel string
	}{
		{redis.UniversalOptions{}, "127.0.0.1:6379", true, ""},
		{redis.UniversalOptions{Addrs: []string{"a:1"}}, "a:1", true, ""},
		{redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}}, "a:1", false, ""},
		{redis.UniversalOptions{IsClusterMode: true}, "127.0.0.1:6379", false, ""},
		{redis.UniversalOptions{MasterName: "m"}, "127.0.0.1:26379", false, "m"},
		{redis.UniversalOptions{Addrs: []string{"a:1"}, MasterName: "m", IsClusterMode: true}, "a:1", false, "m"},
	} {
		o := redistest.Must(goredisholdfast.ClientOption(&c.opts))(t)
		require.Equal(t, c.address, o.InitAddress[0])
		require.Equal(t, c.single, o.ForceSingleClient)
		require.Equal(t, c.sentinel, o.Sentinel.MasterSet)
	}
}

// unchanging streams credentials that never change.
type unchanging struct{}

func (unchanging) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return auth.NewBasicCredentials("fixed", "4"), nil, nil
}

// As in go-redis, a user without a password does not log in, and one provider precedes another.
func TestOptions_Credentials(t *testing.T) {
	fixed := func(opts redis.Options) (string, string) {
		o := redistest.Must(goredisholdfast.ClientOption(&opts))(t)
		if o.AuthCredentialsFn == nil {
			return o.Username, o.Password
		}
		c := redistest.Must(o.AuthCredentialsFn(rueidis.AuthCredentialsContext{}))(t)
		return c.Username, c.Password
	}
	is := func(username, password string, opts redis.Options) {
		t.Helper()
		u, p := fixed(opts)
		require.Equal(t, username+" "+password, u+" "+p)
	}
	plain := func() (string, string) { return "plain", "1" }
	withContext := func(ctx context.Context) (string, string, error) {
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		return "context", "2", nil
	}
	streaming := &stream{username: "stream", password: "3"}
	is("", "", redis.Options{Username: "u"})
	is("u", "p", redis.Options{Username: "u", Password: "p"})
	is("", "p", redis.Options{Password: "p"})
	is("plain", "1", redis.Options{Username: "u", Password: "p", CredentialsProvider: plain})
	is("context", "2", redis.Options{CredentialsProvider: plain, CredentialsProviderContext: withContext})
	is("stream", "3", redis.Options{CredentialsProvider: plain, CredentialsProviderContext: withContext, StreamingCredentialsProvider: streaming})
	is("fixed", "4", redis.Options{StreamingCredentialsProvider: unchanging{}})
	is("", "", redis.Options{CredentialsProvider: func() (string, string) { return "u", "" }})
	require.Zero(t, streaming.listeners.Load())
}
