package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestOutcomeOf(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("acquire: %w", errors.Join(errors.New("x"), err)) }
	for want, errs := range map[Outcome][]error{
		Done: {nil},
		Unavailable: {
			&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
			&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
			&net.OpError{Op: "dial", Err: &net.DNSError{}},
			refusal("TRYAGAIN Multiple keys request during rehashing of slot"),
			refusal("CLUSTERDOWN The cluster is down"),
			refusal("MISCONF Redis is configured to save RDB snapshots"),
			refusal("@user_script: 20: -READONLY You can't write against a read only replica.\r\n"), rueidis.ErrNoSlot,
		},
		Refused: {
			notSent{context.Canceled}, notSent{context.DeadlineExceeded}, errUneven,
			rueidis.ErrClosing,
			&tls.CertificateVerificationError{Err: io.EOF},
			&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")},
			&net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")},
			&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
			&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")},
			refusal("CROSSSLOT Keys in request don't hash to the same slot"),
			refusal("MOVED 3999 127.0.0.1:6381"), refusal("ASK 3999 127.0.0.1:6381"),
			refusal("DENIED Redis is running in protected mode"),
			refusal("lease must be a whole number of ms from 1 to 999999999999999"),
			refusal("wrong number of arguments for 'evalsha' command"),
		},
		Doubtful: {
			refusal("ERR internal error"), refusal("Some words that a proxy may invent"),
		},
		Unknown: {
			context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
			os.ErrDeadlineExceeded, syscall.ECONNRESET,
			&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
			&net.OpError{Op: "write", Err: syscall.EPIPE},
			&net.OpError{Op: "remote error", Err: errors.New("tls: internal error")},
			rueidis.Nil, errReply, errors.New("anything else"),
			refusal("NEWCODE that Redis may invent"), refusal(""),
		},
	} {
		for _, err := range errs {
			require.Equal(t, want, OutcomeOf(err), "%v", err)
			if err != nil {
				require.Equal(t, want, OutcomeOf(wrapped(err)), "wrapped %v", err)
			}
		}
	}
}

// What servers say, word for word, and which: in an error reply, and as the error of one command
// that a script has caught. Each was seen there, those of Redis 7.2 and Envoy in their sources.
func TestOutcomeOfEachText(t *testing.T) {
	for want, texts := range map[Outcome][]struct{ servers, text string }{
		Unavailable: {
			{"Redis 6.2, 7.0", "NOSCRIPT No matching script. Please use EVAL."},
			{"Redis 6.2", "@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'."},
			{"Redis 6.2", "@user_script: 1: -READONLY You can't write against a read only replica."},
			{"Redis 6.2", "@user_script: 1: -NOREPLICAS Not enough good replicas to write."},
			{"Redis 6.2", "@user_script: 1: -MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk."},
			{"Redis 6.2, 7.0, Valkey 9", "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."},
			{"Redis 6.2, 7.0", "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
			{"Redis 6.2", "LOADING Redis is loading the dataset in memory"},
			{"Redis 6.2, 7.0, Valkey 9", "ERR max number of clients reached"},
			{"Redis 7.0", "OOM command not allowed when used memory > 'maxmemory'. script: 52d55e10, on @user_script:1."},
			{"Redis 7.0", "OOM command not allowed when used memory > 'maxmemory'."},
			{"Redis 7.0", "READONLY You can't write against a read only replica. script: 52d55e10, on @user_script:1."},
			{"Redis 7.0", "NOREPLICAS Not enough good replicas to write. script: 52d55e10, on @user_script:1."},
			{"Valkey 9", "NOSCRIPT No matching script."},
			{"Valkey 9", "OOM command not allowed when used memory > 'maxmemory'. script: on @user_script:1."},
			{"Valkey 9", "READONLY You can't write against a read only replica. script: on @user_script:1."},
			{"Valkey 9", "NOREPLICAS Not enough good replicas to write. script: on @user_script:1."},
			{"Valkey 9", "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."},
		},
		Refused: {
			{"Redis 6.2", "@user_script: 1: The user executing the script can't run this command or subcommand"},
			{"Redis 6.2", "@user_script: 1: The user executing the script can't access at least one of the keys mentioned in the command arguments"},
			{"Redis 6.2", "@user_script: 1: The user executing the script can't publish to the channel mentioned in the command"},
			{"Redis 6.2, 7.0", "NOPERM this user has no permissions to access one of the keys used as arguments"},
			{"Redis 6.2", "NOPERM this user has no permissions to run the 'eval' command or its subcommand"},
			{"Redis 6.2", "ERR Error running script (call to f_52d55e10): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"Redis 6.2", "WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"Redis 6.2", "WRONGPASS invalid username-password pair or user is disabled."},
			{"Redis 6.2, Envoy", "NOAUTH Authentication required."},
			{"Redis 6.2, 7.0, Valkey 9", "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
			{"Redis 6.2, 7.0, Valkey 9", "ERR DB index is out of range"},
			{"Redis 6.2, 7.0", "ERR SELECT is not allowed in cluster mode"},
			{"Redis 6.2", "ERR Error running script (call to f_06da9426): @user_script:1: user_script:1: attempt to perform arithmetic on a nil value"},
			{"Redis 6.2", "ERR unknown command `evalsha`, with args beginning with: `a`, "},
			{"Redis 6.2", "@user_script: 1: Unknown Redis command called from Lua script"},
			{"Redis 7.0", "ERR The user executing the script can't run this command or subcommand script: 52d55e10, on @user_script:1."},
			{"Redis 7.0", "ERR The user executing the script can't run this command or subcommand"},
			{"Redis 7.0", "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"},
			{"Redis 7.0", "ERR The user executing the script can't publish to the channel mentioned in the command"},
			{"Redis 7.0", "NOPERM this user has no permissions to run the 'eval' command"},
			{"Redis 7.0", "WRONGTYPE Operation against a key holding the wrong kind of value script: 52d55e10, on @user_script:1."},
			{"Redis 7.0", "ERR user_script:1: attempt to perform arithmetic on a nil value script: 06da9426, on @user_script:1."},
			{"Redis 7.0, Valkey 9", "ERR unknown command 'evalsha', with args beginning with: 'a' "},
			{"Redis 7.0", "ERR Unknown Redis command called from script script: 66fdbcee, on @user_script:1."},
			{"Redis 7.0", "ERR Unknown Redis command called from script"},
			{"Alibaba's proxy, by its manual", "ERR eval/evalsha command keys must in same slot"},
			{"Redis 7.2", "ERR ACL failure in script: User least has no permissions to run the 'hset' command script: 52d55e10, on @user_script:1."},
			{"Redis 7.2", "ERR ACL failure in script: No permissions to access a key script: 52d55e10, on @user_script:1."},
			{"Redis 7.2", "NOPERM User least has no permissions to run the 'evalsha' command"},
			{"Valkey 9", "ERR ACL failure in script: User u has no permissions to run the 'hset' command script: on @user_script:1."},
			{"Valkey 9", "ERR ACL failure in script: User u has no permissions to run the 'hset' command"},
			{"Valkey 9", "ERR ACL failure in script: No permissions to access a key"},
			{"Valkey 9", "ERR ACL failure in script: No permissions to access a channel"},
			{"Valkey 9", "NOPERM No permissions to access a key"},
			{"Valkey 9", "NOPERM User v has no permissions to run the 'eval' command"},
			{"Valkey 9", "WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:1."},
			{"Valkey 9", "ERR user_script:1: attempt to perform arithmetic on a nil value script: on @user_script:1."},
			{"Valkey 9", "ERR Unknown command called from script script: on @user_script:1."},
			{"Valkey 9", "ERR Unknown command called from script"},
		},
		Doubtful: {
			{"Envoy", "upstream failure"},
			{"Envoy", "no upstream host"},
			{"Envoy", "upstream protocol error"},
		},
	} {
		for _, says := range texts {
			forms := []string{says.text}
			if strings.HasPrefix(says.text, "@user_script: 1: ") { // how Redis 6.2 says it if the script has not caught it
				forms = append(forms, "ERR Error running script (call to f_52d55e10): @user_script:1: "+says.text)
			}
			for _, text := range forms {
				require.Equal(t, want, OutcomeOf(refusal(text)), "%v", says)
				require.Equal(t, want, OutcomeOf(refusal(strings.TrimPrefix(text, "ERR "))), "%v", says)
				require.Equal(t, strings.Contains(text, "WRONGTYPE"), Permanent(refusedAs(text)), "%v", says)
				for sentinel, has := range map[error]string{holdfast.ErrWrongType: "WRONGTYPE", holdfast.ErrOldServer: "nknown .*command"} {
					require.Equal(t, regexp.MustCompile(has).MatchString(text), errors.Is(refusedAs(text), sentinel), "%v", says)
				}
			}
		}
	}
}

func TestRefusedAsEndsWithoutALineBreak(t *testing.T) {
	require.EqualError(t, refusedAs("ERR READONLY You can't write.\r\n"), "READONLY You can't write.")
}

// A connection that a call with little time dials is that of other users of the client too,
// and the call's end would be the end of the dial.
func TestOldServer_IsAskedOnTheOneConnection(t *testing.T) {
	s := redistest.Start(t)
	var dials atomic.Int32
	client := s.Client(t, func(o *rueidis.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return d.DialContext(ctx, "tcp", addr)
		}
	})
	for i := range 10 { // rueidis chooses one of four at random
		s.Do(t, "SCRIPT", "FLUSH")
		acquired(t, NewRedis(client, RedisSettings{}), fmt.Sprint(i), ownA)
	}
	require.EqualValues(t, 1, dials.Load())
}

// A server is asked whether it is too old without a wait for replicas: a third one would take
// more time than a call has.
func TestOldServer_IsAskedWithoutReplicas(t *testing.T) {
	s := redistest.Start(t)
	n := NewRedis(s.Client(t), RedisSettings{Replicas: 1, ReplicaTimeout: time.Millisecond})
	_, err := n.Acquire(bounded(t), asking("k", ownA))
	require.ErrorIs(t, err, holdfast.ErrNotReplicated)
	require.Equal(t, 2, cost(t, s)["wait"], "one behind evalsha, one behind eval")
}
