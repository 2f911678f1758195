package valkeyholdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/valkeyholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/lockclienttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// A program has the options of its client of valkey-go, and locks on the same server.
func ExampleNewClient() {
	opts := valkey.ClientOption{InitAddress: []string{"10.0.0.7:6379"}, Username: "shop", Password: "secret"}
	client, err := valkeyholdfast.NewClient(opts)
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
		return nil // read and write with the client of valkey-go
	})
	fmt.Println(err)
}

// open returns a locker on the client that o makes.
func open(t *testing.T, o valkey.ClientOption, more ...holdfast.Option) *rlock.Locker {
	t.Helper()
	return lockclienttest.Open(t, func() (rueidis.Client, error) { return valkeyholdfast.NewClient(o) }, more...)
}

func TestServer_TLSAndACL(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	s := redistest.StartTLS(t, ca, ca.Certificate(time.Now().Add(time.Hour), "127.0.0.1"))
	lockclienttest.User(t, s.Server, ">secret")
	s.Do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval")
	o := valkey.ClientOption{
		InitAddress: []string{fmt.Sprintf("127.0.0.1:%d", s.Port())}, TLSConfig: s.Config(),
		Username: "shop", Password: "secret", SelectDB: 3, ClientName: "locks", PipelineMultiplex: 3,
	}
	old := o
	old.AlwaysRESP2, old.ClientName = true, "old"
	lockclienttest.Excludes(t, open(t, o), open(t, old), "k")
	lockclienttest.Suits(t, s.Server)
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s, addrs := lockclienttest.Sentinels(t)
	o := valkey.ClientOption{InitAddress: addrs, Username: "shop", Password: "secret", ClientName: "locks"}
	o.Sentinel.MasterSet, o.Sentinel.Username, o.Sentinel.Password = redistest.MasterSet, "watch", "seen"
	reads := o
	reads.SendToReplicas = func(valkey.Completed) bool { return true }
	one, other := open(t, o), open(t, reads)
	lockclienttest.Excludes(t, one, other, "k")
	require.NotEmpty(t, lockclienttest.Connections(t, s.Master(), "locks"))
	for _, replica := range s.Replicas() {
		require.Empty(t, lockclienttest.Connections(t, replica, "locks"))
	}
	old := s.KillMaster()
	s.AwaitMaster(t, old)
	lockclienttest.Excludes(t, one, other, "k")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	o := valkey.ClientOption{Username: "shop", Password: "secret", ClientName: "locks"}
	for _, s := range c.Masters(t) {
		lockclienttest.User(t, s, ">secret")
		o.InitAddress = append(o.InitAddress, s.Addr())
	}
	one := o
	one.InitAddress = o.InitAddress[:1]
	lockclienttest.Excludes(t, open(t, o), open(t, one), "a", "b", "c", "d")
	for _, s := range c.Masters(t) {
		require.NotEmpty(t, lockclienttest.Connections(t, s, "locks"))
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	lockclienttest.Rotates(t, func(s *redistest.Server, password *atomic.Value, more ...holdfast.Option) *rlock.Locker {
		return open(t, valkey.ClientOption{
			InitAddress: []string{s.Addr()},
			AuthCredentialsFn: func(valkey.AuthCredentialsContext) (valkey.AuthCredentials, error) {
				return valkey.AuthCredentials{Username: "shop", Password: password.Load().(string), RefreshAfter: time.Now()}, nil
			},
		}, more...)
	})
}

// A client that cannot be made says why, and leaves nothing open.
func TestNewClient_Fails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lockclienttest.User(t, s, ">secret")
	sealed := errors.New("the vault is sealed")
	fails := func(o valkey.ClientOption) error {
		t.Helper()
		client, err := valkeyholdfast.NewClient(o)
		require.Nil(t, client)
		require.ErrorContains(t, err, "valkeyholdfast: ")
		return err
	}
	require.ErrorIs(t, fails(valkey.ClientOption{InitAddress: []string{"127.0.0.1:1"}}), holdfast.ErrUnavailable)
	refusal := fails(valkey.ClientOption{InitAddress: []string{s.Addr()}, Username: "shop", Password: "wrong", ForceSingleClient: true})
	require.ErrorContains(t, refusal, "WRONGPASS")
	require.NotErrorIs(t, refusal, holdfast.ErrUnavailable)
	require.ErrorIs(t, fails(valkey.ClientOption{InitAddress: []string{s.Addr()},
		AuthCredentialsFn: func(valkey.AuthCredentialsContext) (valkey.AuthCredentials, error) {
			return valkey.AuthCredentials{}, sealed
		}}), sealed)
	require.ErrorIs(t, fails(valkey.ClientOption{InitAddress: []string{s.Addr()}, ReplicaOnly: true}), holdfast.ErrInvalidArgument)
	require.Eventually(t, func() bool { return len(lockclienttest.Connections(t, s, "")) == 0 }, redistest.Patience, time.Millisecond)
}
