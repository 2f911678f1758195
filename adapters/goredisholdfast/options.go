package goredisholdfast

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/lockclient"
)

// Options are those of a client of go-redis. They may have been used to make one.
type Options interface {
	*redis.Options | *redis.ClusterOptions | *redis.FailoverOptions | *redis.UniversalOptions
}

// ClientOption returns the options of [NewClient], to change some of them, or for
// multilock.Open. It does no I/O, and does not change opts.
//
// It fails with [holdfast.ErrInvalidArgument] on an option that is refused, and names it.
func ClientOption[O Options](opts O) (rueidis.ClientOption, error) {
	o, err := convert(opts)
	if err != nil {
		return rueidis.ClientOption{}, errs.Invalid("goredisholdfast: %w", err)
	}
	return o, nil
}

func convert(opts any) (rueidis.ClientOption, error) {
	if err := refuse(opts); err != nil {
		return rueidis.ClientOption{}, err
	}
	switch o := opts.(type) {
	case *redis.UniversalOptions:
		return ofUniversal(*o)
	case *redis.ClusterOptions:
		return ofCluster(o)
	case *redis.FailoverOptions:
		return ofFailover(o)
	default:
		return ofServer(opts.(*redis.Options))
	}
}

// refused are the options that have no counterpart. Immutable.
var refused = map[string]string{
	"OnConnect":    "is called with a connection of go-redis",
	"Limiter":      "would be left out",
	"ReplicaOnly":  "has a lock ask replicas, and only a master can give one",
	"NewClient":    "makes clients of go-redis",
	"ClusterSlots": "is not asked: a Redis Cluster knows its slots",
}

// refuse returns an error for the first of the options that is refused and set.
func refuse(opts any) error {
	p := reflect.ValueOf(opts)
	if p.IsNil() {
		return errs.Invalid("%T is nil", opts)
	}
	for i, o := 0, p.Elem(); i < o.NumField(); i++ {
		name, field := o.Type().Field(i).Name, o.Field(i)
		why, is := refused[name]
		if !is || field.IsZero() {
			continue
		}
		if name == "NewClient" && field.Pointer() == reflect.ValueOf(redis.NewClient).Pointer() {
			continue // a default that go-redis has filled in
		}
		return errs.Invalid("%s %s", name, why)
	}
	return nil
}

// ofUniversal chooses as redis.NewUniversalClient does.
func ofUniversal(o redis.UniversalOptions) (rueidis.ClientOption, error) {
	switch {
	case o.MasterName != "" && o.ReadOnly:
		return rueidis.ClientOption{}, errs.Invalid("ReadOnly with MasterName %s", refused["ReplicaOnly"])
	case o.MasterName != "":
		return ofFailover(o.Failover())
	case len(o.Addrs) > 1 || o.IsClusterMode:
		if o.DB != 0 {
			return rueidis.ClientOption{}, errs.Invalid("DB is %d, but a Redis Cluster has only DB 0", o.DB)
		}
		return ofCluster(o.Cluster())
	default:
		return ofServer(o.Simple())
	}
}

// ofServer is for one server: no other is asked, even if it is a node of a Redis Cluster.
func ofServer(o *redis.Options) (rueidis.ClientOption, error) {
	if o.Addr == "FailoverClient" {
		return rueidis.ClientOption{}, errs.Invalid("Addr is that of a client of Sentinels: pass its FailoverOptions")
	}
	from := *o
	return suited(&from, rueidis.ClientOption{InitAddress: []string{cmp.Or(o.Addr, "localhost:6379")}, ForceSingleClient: true})
}

func ofCluster(o *redis.ClusterOptions) (rueidis.ClientOption, error) {
	if len(o.Addrs) == 0 {
		return rueidis.ClientOption{}, errs.Invalid("Addrs is empty")
	}
	return suited(&redis.Options{
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		ClientName: o.ClientName, DisableIdentity: o.DisableIdentity || o.DisableIndentity, IdentitySuffix: o.IdentitySuffix,
	}, rueidis.ClientOption{
		InitAddress:   slices.Clone(o.Addrs),
		ClusterOption: rueidis.ClusterOption{ShardsRefreshInterval: o.ClusterStateReloadInterval},
	})
}

func ofFailover(o *redis.FailoverOptions) (rueidis.ClientOption, error) {
	if len(o.SentinelAddrs) == 0 || o.MasterName == "" {
		return rueidis.ClientOption{}, errs.Invalid("SentinelAddrs or MasterName is empty")
	}
	username, password := login(o.SentinelUsername, o.SentinelPassword)
	return suited(&redis.Options{
		Dialer: o.Dialer, TLSConfig: o.TLSConfig, Protocol: o.Protocol, DB: o.DB,
		Username: o.Username, Password: o.Password, CredentialsProvider: o.CredentialsProvider,
		CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		ClientName: o.ClientName, DisableIdentity: o.DisableIdentity || o.DisableIndentity, IdentitySuffix: o.IdentitySuffix,
	}, rueidis.ClientOption{
		InitAddress: slices.Clone(o.SentinelAddrs),
		Sentinel: rueidis.SentinelOption{
			MasterSet: o.MasterName, Username: username, Password: password, ClientName: o.ClientName, TLSConfig: o.TLSConfig,
		},
	})
}

// suited adds to the options for a deployment what all have in common.
func suited(from *redis.Options, o rueidis.ClientOption) (rueidis.ClientOption, error) {
	if from.Protocol > 3 {
		return o, errs.Invalid("Protocol is %d; 2 and 3 are known", from.Protocol)
	}
	o.AlwaysRESP2 = from.Protocol == 2
	o.SelectDB, o.TLSConfig, o.ClientName = from.DB, from.TLSConfig, from.ClientName
	switch {
	case from.DisableIdentity, from.DisableIndentity:
		o.ClientSetInfo = rueidis.DisableClientSetInfo
	case from.IdentitySuffix != "":
		o.ClientSetInfo = []string{rueidis.LibName + "(" + from.IdentitySuffix + ")", rueidis.LibVer}
	}
	o.Dialer.Timeout = from.DialTimeout
	if from.ReadTimeout > 0 {
		o.ConnWriteTimeout = max(from.ReadTimeout, from.WriteTimeout)
	}
	o.DialCtxFn = dialer(from, strings.HasPrefix(o.InitAddress[0], "/"))
	lockclient.Suit(&o)
	o.Username, o.Password = login(from.Username, from.Password)
	if f := provider(from); f != nil {
		lockclient.Credentials(&o, f)
	}
	return o, nil
}
