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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/valkeyholdfast"
)

// What becomes of each option of valkey-go v1.0.79. A new version of it has to say so here, and
// in the package comment.
var (
	taken = []string{
		"InitAddress", "ShuffleInit", "ForceSingleClient", "TLSConfig", "DialFn", "DialCtxFn", "Dialer", "ConnWriteTimeout",
		"Username", "Password", "AuthCredentialsFn", "SelectDB", "AlwaysRESP2", "ClientName", "ClientSetInfo", "ClientNoEvict",
		"Sentinel.MasterSet", "Sentinel.Username", "Sentinel.Password", "Sentinel.ClientName", "Sentinel.TLSConfig",
		"Sentinel.Dialer", "Sentinel.TopologyRefreshInterval",
		"ClusterOption.ShardsRefreshInterval", "ClusterOption.PreferInitAddressRefresh", "ClusterOption.PreferClusterShards",
		"Standalone.ReplicaAddress", // there is one server then, and no replica is asked
	}
	leftAside = []string{
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
	}
	refused = []string{"ReplicaOnly", "Standalone.EnableRedirect"}
)

// Each option that is taken changes the result, one that is left aside does not, and one that is
// refused is named.
func TestEachOption(t *testing.T) {
	base := valkey.ClientOption{InitAddress: []string{"a:1"}}
	base.Sentinel.MasterSet = "m"
	is, err := valkeyholdfast.ClientOption(base)
	require.NoError(t, err)
	each(t, reflect.TypeFor[valkey.ClientOption](), "", nil, func(name string, index []int) {
		set := base
		field := reflect.ValueOf(&set).Elem().FieldByIndex(index)
		field.Set(some(t, field.Type()))
		switch becomes, err := valkeyholdfast.ClientOption(set); {
		case slices.Contains(refused, name):
			require.ErrorIs(t, err, holdfast.ErrInvalidArgument, name)
			require.ErrorContains(t, err, "valkeyholdfast: "+name+" ")
		case slices.Contains(taken, name):
			require.NoError(t, err, name)
			require.NotEqual(t, shown(is), shown(becomes), name)
		case slices.Contains(leftAside, name):
			require.NoError(t, err, name)
			require.Equal(t, shown(is), shown(becomes), name)
		default:
			t.Errorf("%s: is it taken, refused or without meaning for locks?", name)
		}
	})
	_, err = valkeyholdfast.ClientOption(valkey.ClientOption{})
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

// shown is o in a form that can be compared: of a function only whether it is there.
func shown(o rueidis.ClientOption) map[string]any {
	all, v := map[string]any{}, reflect.ValueOf(o)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Func {
			all[v.Type().Field(i).Name] = !f.IsNil()
		} else {
			all[v.Type().Field(i).Name] = f.Interface()
		}
	}
	return all
}

// some returns a value that is not zero.
func some(t *testing.T, typ reflect.Type) reflect.Value {
	switch typ {
	case reflect.TypeFor[time.Duration]():
		return reflect.ValueOf(1500 * time.Millisecond)
	case reflect.TypeFor[net.Dialer]():
		return reflect.ValueOf(net.Dialer{Timeout: time.Second})
	}
	switch typ.Kind() {
	case reflect.String:
		return reflect.ValueOf("some")
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Int:
		return reflect.ValueOf(2)
	case reflect.Slice:
		return reflect.ValueOf([]string{"b:2", "c:3"})
	case reflect.Pointer:
		return reflect.New(typ.Elem())
	case reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) []reflect.Value { panic("not called") })
	}
	require.FailNow(t, "no value of "+typ.String())
	return reflect.Value{}
}

// What suits locks is set, whatever the options say.
func TestOptions_SuitLocks(t *testing.T) {
	for _, slow := range []time.Duration{0, -1, time.Hour} {
		o, err := valkeyholdfast.ClientOption(valkey.ClientOption{
			InitAddress: []string{"a:1", "b:2"}, Standalone: valkey.StandaloneOption{ReplicaAddress: []string{"b:2"}},
			SendToReplicas: func(valkey.Completed) bool { return true }, ConnLifetime: time.Second, DisableAutoPipelining: true,
			Dialer: net.Dialer{Timeout: slow, KeepAlive: -1}, ConnWriteTimeout: slow, ClusterOption: valkey.ClusterOption{ShardsRefreshInterval: slow},
		})
		require.NoError(t, err)
		require.Equal(t, shown(rueidis.ClientOption{
			InitAddress: []string{"a:1"}, ForceSingleClient: true, DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
			RingScaleEachConn: 8, ReadBufferEachConn: 32 << 10, WriteBufferEachConn: 32 << 10,
			ConnWriteTimeout: 3 * time.Second, Dialer: net.Dialer{Timeout: 2 * time.Second},
			ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: 5 * time.Second},
		}), shown(o))
	}
}

// A connection is not asked to log in again: a refusal would end it, and calls under way would
// seem to be refused.
func TestOptions_RefreshAfter(t *testing.T) {
	o, err := valkeyholdfast.ClientOption(valkey.ClientOption{
		InitAddress: []string{"a:1"},
		AuthCredentialsFn: func(of valkey.AuthCredentialsContext) (valkey.AuthCredentials, error) {
			return valkey.AuthCredentials{Username: "u", Password: of.Address.String(), RefreshAfter: time.Now()}, nil
		},
	})
	require.NoError(t, err)
	c, err := o.AuthCredentialsFn(rueidis.AuthCredentialsContext{Address: &net.TCPAddr{Port: 7}})
	require.NoError(t, err)
	require.Equal(t, rueidis.AuthCredentials{Username: "u", Password: ":7"}, c)
}
