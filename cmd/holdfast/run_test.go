package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

const key = "jobs:nightly"

// ran are the arguments that run the child.
func ran(args ...string) []string {
	return append(append([]string{"run"}, args...), append([]string{key, "--"}, children...)...)
}

func TestRunExitsWithTheStatusOfTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for script, c := range map[string]struct {
		status int
		errors string
	}{
		"true":           {0, ""},
		"exit 7":         {7, ""},
		"kill -TERM $$":  {128 + 15, ""},
		"kill -9 $$":     {128 + 9, ""},
		"kill -INT $$":   {-2, ""}, // as a shell needs it
		"exit 130":       {130, ""},
		"exec 1>&2; cat": {0, "input"},
	} {
		_, errors := do(t, c.status, s.Addr(), "input", "run", key, "--", "sh", "-c", script)
		require.Equal(t, c.errors, errors, script)
		requireFree(t, s, key)
	}
}

func TestRunHoldsTheLockWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := newLocker(t, s)
	for _, more := range [][]string{nil, {"--fair"}, {"--fair", "--fence-env", "FENCE"}, {"--wait", "60s"}, {"--try"}, {"-wait=60s"}, {"-try"}} {
		p := started(t, s.Addr(), more...)
		require.True(t, redistest.Must(other.Inspect(t.Context(), key))(t).Held)
		p.write("exit 4").exits(4)
		requireFree(t, s, key)
	}
}

func TestRunDoesNotRunTheCommandWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lease := locked(t, newLocker(t, s), key)
	for _, how := range [][]string{{"--try"}, {"--wait", "2s"}, {"--wait=0"}, {"--fair", "--try"}, {"--fair", "--wait", "2s"}} {
		out, text := do(t, statusNotAcquired, s.Addr(), "", ran(how...)...)
		require.Regexp(t, `held by "[^"]+/\d+"\n$`, text)
		require.Empty(t, out)
	}
	require.NoError(t, lease.Unlock(t.Context()))
	requireFree(t, s, key)
}

// awaitQueue waits until so many wait for key.
func awaitQueue(t *testing.T, s *redistest.Server, n int64) {
	t.Helper()
	eventually(t, func() bool { return number(t, s, "LLEN", "redisson_lock_queue:{"+key+"}") == n })
}

func TestRunInterruptedWhileItWaitsHoldsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first := started(t, s.Addr(), "--fair")
	for sig, status := range map[syscall.Signal]int{syscall.SIGTERM: 128 + 15, syscall.SIGINT: -2} {
		p := start(t, s.Addr(), ran("--fair")...)
		awaitQueue(t, s, 1)
		p.signal(sig)
		p.exits(status)
		awaitQueue(t, s, 0)
	}
	first.write("exit 0").exits(0)
	requireFree(t, s, key)
}

// Redis does not answer, so the undo after the first signal would take seconds: a second one ends holdfast, with its own status.
func TestRunInterruptedTwiceWaitsForNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	var acquires, undoes atomic.Bool
	proxy.OnRequest(func(cmd []string) redistest.Verdict {
		switch {
		case !strings.HasPrefix(cmd[0], "EVAL"):
			return redistest.Pass
		case slices.Contains(cmd, "tombstone"):
			undoes.Store(true)
		default:
			acquires.Store(true)
		}
		return redistest.Hold
	})
	p := start(t, proxy.Addr(), ran()...)
	eventually(t, acquires.Load)
	p.signal(syscall.SIGTERM)
	eventually(t, undoes.Load)
	p.signal(syscall.SIGINT)
	p.exits(-int(syscall.SIGINT))
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := command(t, s.Addr(), ran()...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without terminal
	p := startCommand(t, c)
	p.says("started")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		p.signal(sig)
		p.says("got " + sig.String())
	}
	p.write("exit 0").exits(0)
}

func TestRunKilledKillsTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := started(t, s.Addr())
	p.signal(syscall.SIGKILL)
	p.exits(-9) // and the output has ended: the child is gone, too
}

func TestRunEndsTheCommandWhenTheLockIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := newLocker(t, s)
	lose := func(killAfter string) *program {
		p := started(t, s.Addr(), "--lease", "30s", "--kill-after", killAfter)
		require.True(t, redistest.Must(other.ForceUnlock(t.Context(), key))(t))
		return p
	}
	p := lose("1m")
	p.says("got terminated")
	p.signal(syscall.SIGUSR1) // is forwarded until the end
	p.says("got " + syscall.SIGUSR1.String())
	p.write("exit 0").exits(statusLost)
	require.Contains(t, p.err.String(), "lease lost")

	lose("50ms").exits(statusLost)
}

// Nobody reads the standard error any more: a message there ends neither holdfast nor the command.
func TestRunOutlivesTheReaderOfItsErrors(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	c := command(t, proxy.Addr(), ran("--lease", "30s")...)
	c.Stderr = writer
	p := startCommand(t, c)
	require.NoError(t, writer.Close())
	p.says("started")
	require.NoError(t, reader.Close())
	proxy.Refuse(true) // renewals fail, and holdfast says so
	proxy.Cut()
	p.says("got terminated")
	p.write("exit 0").exits(statusLost)
}

// Nobody reads the standard error for a while: the command without its lock is ended all the same.
func TestRunDoesNotWaitForTheReaderOfItsErrors(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, writer.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for err == nil { // until it is full
		_, err = writer.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	c := command(t, s.Addr(), ran("--lease", "30s")...)
	c.Stderr = writer
	p := startCommand(t, c)
	p.says("started")
	require.True(t, redistest.Must(newLocker(t, s).ForceUnlock(t.Context(), key))(t))
	p.says("got terminated")
	p.write("exit 0")
	require.NoError(t, writer.Close())
	require.Contains(t, string(redistest.Must(io.ReadAll(reader))(t)), "; ending the command\n")
	p.exits(statusLost)
}

// While Redis hangs, the client takes longer to close than holdfast waits.
func TestRunLosesTheLockWhileRedisHangs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := started(t, s.Addr(), "--lease", "30s", "--kill-after", "50ms")
	s.Pause()
	p.exits(statusLost)
}

// Redis hangs when the command ends. The status is that of the command, and it does not come
// a lease later only.
func TestRunDoesNotWaitLongToRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := started(t, s.Addr(), "--lease", "30s")
	s.Pause()
	p.write("exit 5").exits(5)
	require.Contains(t, p.err.String(), "the lock is free when its lease ends")
	s.Resume()
	eventually(t, func() bool { return number(t, s, "EXISTS", key) == 0 })
}

func TestRunWhileRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	for _, how := range [][]string{{"--try"}, {"--wait", "100ms"}, {"--lease", "100ms"}} {
		out, text, status := once(t, s.Addr(), "", ran(how...)...)
		require.Equal(t, statusAway, status, text)
		require.Contains(t, text, "redis unavailable: ")
		require.Empty(t, out)
	}
	p := start(t, s.Addr(), ran()...)
	s.Restart()
	p.says("started")
	p.write("exit 0").exits(0)
}

func TestRunGivesTheCommandAFenceAndNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	s := redistest.Start(t, "--requirepass", secret)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	last := int64(0)
	for from, has := range map[string]struct {
		env, args []string
		passesURL bool
	}{
		"URL":         {env: []string{envURL + "=redis://:" + secret + "@" + s.Addr()}},
		"environment": {env: []string{envURL + "=redis://" + s.Addr(), envPassword + "=" + secret, envSentinelPassword + "=" + secret}, passesURL: true},
		"file":        {env: []string{envURL + "=redis://" + s.Addr(), envPassword + "=wrong"}, args: []string{"--password-file", file}, passesURL: true},
	} {
		c := command(t, s.Addr(), append(has.args, "run", "--fence-env=FENCE", key, "--", "sh", "-c", "echo $FENCE; env")...)
		c.Env = append(c.Env, has.env...)
		p := startCommand(t, c)
		out, status := p.ends()
		require.Zero(t, status, p.err.String())
		require.NotContains(t, out, secret, from)
		require.Equal(t, has.passesURL, strings.Contains(out, envURL), from)
		number, _, _ := strings.Cut(out, "\n")
		fence := redistest.Must(strconv.ParseInt(number, 10, 64))(t)
		require.Greater(t, fence, last)
		last = fence
	}
	_, text := do(t, statusRefused, s.Addr(), "", ran("--try")...)
	require.Contains(t, text, "NOAUTH")
}

func TestRunOfACommandThatCannotStart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o600))
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, []byte("neither script nor binary"), 0o700))
	for command, want := range map[string]int{
		"no-such-command-here":        statusNotFound,
		filepath.Join(dir, "missing"): statusNotFound,
		dir:                           statusNotRunnable,
		text:                          statusNotRunnable,
		program:                       statusNotRunnable,
	} {
		do(t, want, s.Addr(), "", "run", key, "--", command)
		requireFree(t, s, key)
	}
}

func TestFlagsWithOneDash(t *testing.T) {
	given := strings.Fields("run -fair --try -wait=1s -o json -watches - -redis h k -- sort -watch -o f")
	require.Equal(t, strings.Fields("run --fair --try --wait=1s -o json -watches - --redis h k -- sort -watch -o f"), twoDashes(newRoot(), given))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	var out, text strings.Builder
	require.Equal(t, statusUsage, execute([]string{"run", "--fence-env", "A B", "k", "--", "true"}, nil, &out, &text))
	for args, why := range map[string]string{
		"run":                                                      "run needs one key",
		"run k":                                                    "run needs one key",
		"run k true":                                               "run needs one key",
		"run k --":                                                 "run needs one key",
		"run k j -- true":                                          "run needs one key",
		"run -- k true":                                            "run needs one key",
		"run {k} -- true":                                          "key is in braces",
		"run --try --wait 1s k -- x":                               "[try wait]",
		"run --wait -1s k -- true":                                 "--wait",
		"run --wait soon k -- true":                                "--wait",
		"run --lease 1ms k -- true":                                "--lease",
		"run --kill-after -1s k -- true":                           "--kill-after",
		"run --fence-env A=B k -- true":                            "--fence-env",
		"run --at-least 1ms k -- true":                             "--at-least",
		"run --max-hold 0s k -- true":                              "--max-hold",
		"run --max-hold 2562047h k -- true":                        "--max-hold",
		"run --kill-after 2562047h k -- true":                      "--kill-after",
		"run --at-least 1m k -- true":                              "--try, or a --wait that is shorter",
		"run --at-least 1m --wait 1m k -- true":                    "--try, or a --wait that is shorter",
		"run --redis redis://h:99999 k -- true":                    "99999",
		"help bogus":                                               "bogus",
		"completion bsh":                                           "bsh",
		"run --nonsense k -- true":                                 "--nonsense",
		"run -nonsense k -- true":                                  "-nonsense",
		"run --redis redis://u:s3cr3t@h k -- true":                 "--password-file",
		"run --redis http://u:s3cr3t@h k -- true":                  "not understood",
		"run --redis redis://u:s3cr3t/@h k -- true":                "not understood",
		"run --redis redis://h?mastr_set=locks k -- true":          "mastr_set",
		"run --redis redis://h --tls-ca ca.pem k -- true":          "rediss://",
		"run --redis rediss://h --tls-ca main_test.go k -- true":   "no certificate",
		"run --redis rediss://h --tls-cert main_test.go k -- true": "--tls-cert",
		"run --password-file /nowhere k -- true":                   "--password-file",
		"ls -o yaml":                                               "-o",
		"show -o yaml k":                                           "-o",
		"doctor -o yaml":                                           "-o",
		"doctor a b":                                               "doctor needs one key",
		"doctor {k}":                                               "key is in braces",
		"unlock":                                                   "unlock needs one key",
		"unlock k j":                                               "unlock needs one key",
		"nonsense":                                                 "nonsense",
	} {
		var text strings.Builder
		require.Equal(t, statusUsage, execute(strings.Fields(args), nil, nil, &text), args)
		require.Contains(t, text.String(), why, args)
		require.Contains(t, text.String(), "\nusage: holdfast", args)
		require.NotContains(t, text.String(), "s3cr3t", args)
	}
}
