package valkeyholdfast_test

import (
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/adapters/valkeyholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/lockclienttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// What becomes of each option of valkey-go v1.0.79. A new version of it has to say so here, and
// in the package comment.
var become = lockclienttest.Becomes{
	Adapter: "valkeyholdfast",
	Taken: []string{
		"InitAddress", "ShuffleInit", "ForceSingleClient", "TLSConfig", "DialFn", "DialCtxFn", "Dialer", "ConnWriteTimeout",
		"Username", "Password", "AuthCredentialsFn", "SelectDB", "AlwaysRESP2", "ClientName", "ClientSetInfo", "ClientNoEvict",
		"Sentinel.MasterSet", "Sentinel.Username", "Sentinel.Password", "Sentinel.ClientName", "Sentinel.TLSConfig",
		"Sentinel.Dialer", "Sentinel.TopologyRefreshInterval",
		"ClusterOption.ShardsRefreshInterval", "ClusterOption.PreferInitAddressRefresh", "ClusterOption.PreferClusterShards",
		"Standalone.ReplicaAddress", // there is one server then, and no replica is asked
	},
	LeftAside: []string{
		// Repeated commands.
		"RetryDelay", "DisableRetry", "ConnLifetime", "ClusterOption.MaxMovedRedirections",
		// Client-side caches.
		"NewCacheStoreFn", "OnInvalidations", "ClientTrackingOptions", "CacheSizeEachConn", "DisableCache",
		// Which node gets a command that reads.
		"SendToReplicas", "ReplicaSelector", "ReadNodeSelector", "EnableReplicaAZInfo", "AZFromInfo",
		// Connections, pipelines and buffers.
		"BlockingPoolCleanup", "BlockingPoolMinSize", "BlockingPoolSize", "BlockingPipeline", "PipelineMultiplex",
		"RingScaleEachConn", "ReadBufferEachConn", "WriteBufferEachConn", "MaxFlushDelay", "DisableTCPNoDelay",
		"DisableAutoPipelining", "AlwaysPipelining",
		"ClientNoTouch",
	},
	Refused: []string{"ReplicaOnly", "Standalone.EnableRedirect"},
}

func TestEachOption(t *testing.T) {
	base := valkey.ClientOption{InitAddress: []string{"a:1"}}
	base.Sentinel.MasterSet = "m"
	is := redistest.Must(valkeyholdfast.ClientOption(base))(t)
	each(t, reflect.TypeFor[valkey.ClientOption](), "", nil, func(name string, index []int) {
		set := base
		field := reflect.ValueOf(&set).Elem().FieldByIndex(index)
		field.Set(lockclienttest.Some(t, field.Type(), net.Dialer{Timeout: time.Second}))
		becomes, err := valkeyholdfast.ClientOption(set)
		become.Option(t, name, is, becomes, err)
	})
	_, err := valkeyholdfast.ClientOption(valkey.ClientOption{})
	require.EqualError(t, err, "valkeyholdfast: InitAddress is empty")
}

// each calls f for each field of typ, and for those of the structs of valkey-go in it.
func each(t *testing.T, typ reflect.Type, prefix string, at []int, f func(name string, index []int)) {
	for i := range typ.NumField() {
		field, index := typ.Field(i), append(slices.Clone(at), i)
		if field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == typ.PkgPath() {
			each(t, field.Type, prefix+field.Name+".", index, f)
		} else {
			f(prefix+field.Name, index)
		}
	}
}

// What suits locks is set, whatever the options say.
func TestOptions_SuitLocks(t *testing.T) {
	for _, slow := range []time.Duration{0, -1, time.Hour} {
		o := redistest.Must(valkeyholdfast.ClientOption(valkey.ClientOption{
			InitAddress: []string{"a:1", "b:2"}, Standalone: valkey.StandaloneOption{ReplicaAddress: []string{"b:2"}},
			SendToReplicas: func(valkey.Completed) bool { return true }, ConnLifetime: time.Second, DisableAutoPipelining: true,
			Dialer: net.Dialer{Timeout: slow, KeepAlive: -1}, ConnWriteTimeout: slow, ClusterOption: valkey.ClusterOption{ShardsRefreshInterval: slow},
		}))(t)
		require.Equal(t, lockclienttest.Shown(rueidis.ClientOption{
			InitAddress: []string{"a:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
			RingScaleEachConn: 8, ReadBufferEachConn: 32 << 10, WriteBufferEachConn: 32 << 10,
			ConnWriteTimeout: 3 * time.Second, Dialer: net.Dialer{Timeout: 2 * time.Second},
			ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: 5 * time.Second},
		}), lockclienttest.Shown(o))
	}
}

// A connection is not asked to log in again: a refusal would end it, and calls under way would
// seem to be refused.
func TestOptions_RefreshAfter(t *testing.T) {
	o := redistest.Must(valkeyholdfast.ClientOption(valkey.ClientOption{
		InitAddress: []string{"a:1"},
		AuthCredentialsFn: func(of valkey.AuthCredentialsContext) (valkey.AuthCredentials, error) {
			return valkey.AuthCredentials{Username: "u", Password: of.Address.String(), RefreshAfter: time.Now()}, nil
		},
	}))(t)
	c := redistest.Must(o.AuthCredentialsFn(rueidis.AuthCredentialsContext{Address: &net.TCPAddr{Port: 7}}))(t)
	require.Equal(t, rueidis.AuthCredentials{Username: "u", Password: ":7"}, c)
}
