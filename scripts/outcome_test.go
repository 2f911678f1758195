package scripts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestOutcomeOf(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("acquire: %w", errors.Join(errors.New("x"), err)) }
	for want, errs := range map[Outcome][]error{
		Done: {nil},
		Unavailable: {
			&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
			&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded},
			&net.OpError{Op: "dial", Err: &net.DNSError{}},
			refusal("max number of clients reached"),
			refusal("NOSCRIPT No matching script. Please use EVAL."),
			refusal("TRYAGAIN Multiple keys request during rehashing of slot"),
			refusal("CLUSTERDOWN The cluster is down"),
			refusal("LOADING Redis is loading the dataset in memory"),
			refusal("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
			refusal("READONLY You can't write against a read only replica. script: 1, on @user_script:1."),
			refusal("BUSY Redis is busy running a script."),
			refusal("NOREPLICAS Not enough good replicas to write."),
			refusal("MISCONF Redis is configured to save RDB snapshots"),
			refusal("OOM command not allowed when used memory > 'maxmemory'."),
			refusal("Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write"),
			refusal("@user_script: 20: -READONLY You can't write against a read only replica.\r\n"),
		},
		Refused: {
			notSent{context.Canceled}, notSent{context.DeadlineExceeded}, CheckKey(""), CheckLease(0),
			rueidis.ErrClosing,
			&tls.CertificateVerificationError{Err: io.EOF},
			refusal("WRONGPASS invalid username-password pair or user is disabled."),
			refusal("NOAUTH Authentication required."),
			refusal("NOPERM this user has no permissions to run the 'eval' command"),
			refusal("WRONGTYPE Operation against a key holding the wrong kind of value"),
			refusal("CROSSSLOT Keys in request don't hash to the same slot"),
			refusal("MOVED 3999 127.0.0.1:6381"), refusal("ASK 3999 127.0.0.1:6381"),
			refusal("DENIED Redis is running in protected mode"),
			refusal("ERR unknown command"), refusal("unknown command 'EVALSHA'"),
			refusal("The user executing the script can't run this command or subcommand script: 1"),
		},
		Unknown: {
			context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
			os.ErrDeadlineExceeded, syscall.ECONNRESET,
			&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
			&net.OpError{Op: "write", Err: syscall.EPIPE},
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

func TestDoneContextSendsNothing(t *testing.T) {
	n := NewNode(nil) // any I/O would panic
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, verb := range verbs {
		err := verb(ctx, n, "k", ownA)
		require.ErrorIs(t, err, context.Canceled, name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
}
