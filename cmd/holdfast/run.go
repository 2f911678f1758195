package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/internal/redact"
	"github.com/holdfast-go/holdfast/watchdog"
)

// run is one call of holdfast run.
type run struct {
	wait, lease, killAfter, atLeast, maxHold time.Duration
	fenceEnv                                 string
	permits                                  int  // 0: a lock
	bounded, try, fair, capped               bool // capped: --max-hold is given
	read, write                              bool // a read/write lock

	key     string
	child   *exec.Cmd
	status  syscall.WaitStatus    // of the child, at its end
	tooLong bool                  // the child was ended because --max-hold had passed
	stderr  *unread               // set by run
	renewal atomic.Pointer[error] // that of the last renewal
}

func newRun(s *server) *cobra.Command {
	r := &run{}
	c := &cobra.Command{
		Use:   "run [flags] KEY -- COMMAND [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Run waits for the lock KEY, holds it while COMMAND runs, and exits with the status of
COMMAND, or with 128 and the number of the signal that ended it. The lock is free again
when holdfast exits, or within one lease if it is killed or Redis does not answer then.

The command has the input, output, terminal and process group of holdfast. Signals INT,
TERM, HUP, QUIT, USR1 and USR2 go on to it. If the lock is lost, the command gets TERM and,
if it still runs after --kill-after, KILL. If holdfast itself is killed, Linux kills the
command too, unless that changes its user, as sudo does.

With --at-least, no other run of KEY with that flag begins for the given time, even if
COMMAND has ended: so a job that is due on many machines runs once. For that, choose a time
longer than their clocks can differ, and shorter than that between two due times.

Exit statuses of holdfast itself:
   64  bad usage; nothing was tried
   69  Redis is unavailable, or too slow for --at-least; the command did not run
   70  Redis refuses, as for a wrong password or a missing right; the command did not run
   75  not acquired: another has the lock, or has begun the job within --at-least; the
       command did not run
   79  the lock was lost while the command ran, or --max-hold was over
  126  the command cannot be started
  127  the command was not found`,
		Example: `  holdfast run --try --at-least 30s jobs:nightly -- /usr/local/bin/nightly --all
  holdfast run --wait 10s --fence-env FENCE shop:sku:42 -- sh -c 'exec ./sell --fence "$FENCE"'`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 1 || len(args) < 2 {
				return errors.New("run needs one key, --, and a command")
			}
			return check.Key(args[0])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := check.Permits(r.permits); err != nil && c.Flags().Changed("permits") {
				return fmt.Errorf("--permits: %w", err)
			}
			r.bounded, r.capped = c.Flags().Changed("wait"), c.Flags().Changed("max-hold")
			o, err := r.prepare(s, args)
			if err != nil {
				return err
			}
			return r.run(o)
		},
	}
	f := c.Flags()
	f.DurationVar(&r.wait, "wait", 0, "the longest `TIME` to wait for the lock (default no limit)")
	f.BoolVar(&r.try, "try", false, "do not wait: make one attempt")
	f.DurationVar(&r.lease, "lease", holdfast.DefaultLease, "`TIME` after which Redis frees the lock if holdfast is dead; holdfast renews it every third of it")
	f.BoolVar(&r.fair, "fair", false, "serve waiters in the order in which they came; all users of a lock must choose alike")
	f.StringVar(&r.fenceEnv, "fence-env", "", "`NAME` of a variable with a number for the command, larger than all earlier ones of this lock")
	f.DurationVar(&r.killAfter, "kill-after", 5*time.Second, "`TIME` between TERM and KILL when the lock is lost, or --max-hold over")
	f.DurationVar(&r.atLeast, "at-least", 0, "`TIME` from the start of holdfast for which the job counts as done, on all machines, even if it ends before; needs --try, or a shorter --wait")
	f.DurationVar(&r.maxHold, "max-hold", 0, "`TIME` after which holdfast ends the command; the lock is free at the latest --kill-after and 10 s later")
	f.IntVar(&r.permits, "permits", 0, "let `N` commands run at once, each with a permit of KEY; all users of KEY must choose alike, until resize sets a number for all")
	f.BoolVar(&r.read, "read", false, "let all commands with --read run at once, and none beside one with --write")
	f.BoolVar(&r.write, "write", false, "run alone, beside no command with --read or --write; all users of KEY must use one of them")
	c.MarkFlagsMutuallyExclusive("wait", "try")
	c.MarkFlagsMutuallyExclusive("permits", "fair", "read", "write")
	c.MarkFlagsMutuallyExclusive("permits", "fence-env")
	return c
}

// variable is the name of a variable, as shells have them.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// prepare checks all input before any call to Redis.
func (r *run) prepare(s *server, args []string) (o rueidis.ClientOption, err error) {
	switch {
	case r.wait < 0:
		return o, fmt.Errorf("--wait: %v is negative", r.wait)
	case r.killAfter < 0:
		return o, fmt.Errorf("--kill-after: %v is negative", r.killAfter)
	case r.maxHold > check.MaxLease:
		return o, fmt.Errorf("--max-hold: %v is longer than 100 years", r.maxHold)
	case r.killAfter > check.MaxLease:
		return o, fmt.Errorf("--kill-after: %v is longer than 100 years", r.killAfter)
	case r.fenceEnv != "" && !variable.MatchString(r.fenceEnv):
		return o, fmt.Errorf("--fence-env: %q cannot name a variable", r.fenceEnv)
	}
	if err := check.Lease(r.lease); err != nil {
		return o, fmt.Errorf("--lease: %w", err)
	}
	if err := check.Lease(r.atLeast); err != nil && r.atLeast != 0 {
		return o, fmt.Errorf("--at-least: %w", err)
	}
	if r.atLeast != 0 && !r.try && (!r.bounded || r.wait >= r.atLeast-watchdog.Margin(r.atLeast)) { // otherwise it may have ended when the job starts
		return o, errors.New("--at-least needs --try, or a --wait that is shorter")
	}
	if r.capped && r.maxHold <= 0 {
		return o, fmt.Errorf("--max-hold: %v is not greater than zero", r.maxHold)
	}
	if o, err = s.options(r.lease); err != nil {
		return o, err
	}
	if err := check.Key(args[0] + names.Due); err != nil && r.atLeast != 0 {
		return o, fmt.Errorf("--at-least: %w", err)
	}
	r.key, r.child = args[0], exec.Command(args[1], args[2:]...)
	if err := r.child.Err; err != nil {
		return o, notStarted(err)
	}
	return o, nil
}

func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &failure{statusNotFound, err}
	}
	return &failure{statusNotRunnable, err}
}

func (r *run) run(o rueidis.ClientOption) error {
	r.stderr = newUnread(os.Stderr)
	defer r.stderr.flush()
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	// A write to a standard error that nobody reads any more fails, and does not end holdfast.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	h, err := r.acquireUnless(signals, o)
	if err != nil {
		return err
	}
	r.child.Stdin, r.child.Stdout, r.child.Stderr = os.Stdin, os.Stdout, os.Stderr
	r.child.Env = childEnv(os.Environ(), r.fenceEnv, h.lease.Fence())
	r.child.SysProcAttr = dieWithParent()
	if err := h.lease.Err(); err != nil { // holdfast has stood still
		_ = h.end()
		return failed(fmt.Errorf("%w: the command was not started: %w", holdfast.ErrUnavailable, err))
	}
	if err := r.child.Start(); err != nil {
		_ = h.end() // what it cannot release ends with its lease
		return notStarted(err)
	}
	h.begun = true
	for _, s := range before(signals) { // the terminal did not send them to the child
		r.signal(s)
	}
	r.watch(h.lease, signals)

	err = h.end()
	lost := errors.Is(err, holdfast.ErrLost)
	switch {
	case lost:
		complain(r.stderr, err)
	case err != nil:
		complain(r.stderr, failed(err))
	}
	if lost || r.tooLong {
		return &failure{statusLost, nil}
	}
	if status := r.exitStatus(); status != 0 {
		return &failure{status, nil}
	}
	return nil
}

// watch waits for the end of the child. Until then it forwards signals, and ends the child
// if the lock is lost or --max-hold has passed.
func (r *run) watch(lease *holdfast.Lease, signals <-chan os.Signal) {
	exited := make(chan struct{})
	go func() {
		r.status = awaitExit(r.child.Process)
		close(exited)
	}()
	lost, over, kill := lease.Done(), (<-chan time.Time)(nil), (<-chan time.Time)(nil)
	if r.capped {
		over = time.After(r.maxHold)
	}
	end := func(why error) {
		r.signal(syscall.SIGTERM)
		lost, over, kill = nil, nil, time.After(r.killAfter)
		complain(r.stderr, fmt.Errorf("%w; ending the command", why))
	}
	for {
		select {
		case <-exited:
			return
		case s := <-signals:
			if terminalSends(s, r.child.Process.Pid) {
				continue // the child has got it from there
			}
			r.signal(s)
		case <-lost:
			end(r.lost(lease.Err()))
		case <-over:
			if over = nil; hasEnded(r.child.Process) { // in time, while holdfast stood still
				continue
			}
			r.tooLong = true
			end(fmt.Errorf("the command has run for %v, as long as --max-hold allows", r.maxHold))
		case <-kill:
			r.signal(syscall.SIGKILL)
		}
	}
}

// signal sends a signal to the child, which may have ended.
func (r *run) signal(s os.Signal) {
	if err := r.child.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) { // it may be of another user
		complain(r.stderr, fmt.Errorf("the command does not get the signal %q: %w", s, err))
	}
}

// lost adds to the error of a lost lease that of its last renewal.
func (r *run) lost(err error) error {
	if last := r.renewal.Load(); last != nil && *last != nil {
		return fmt.Errorf("%w; its last renewal: %w", err, redact.Error(*last))
	}
	return err
}

// exitStatus returns the exit status of the child, as shells say it.
func (r *run) exitStatus() int {
	if r.status.Signaled() {
		return signalStatus(r.status.Signal())
	}
	return r.status.ExitStatus()
}

func signalStatus(s os.Signal) int { return statusSignal + int(s.(syscall.Signal)) }

// childEnv returns the environment of a child: without the secrets of holdfast, and with
// the fence if it has a name.
func childEnv(environ []string, fenceName string, fence int64) []string {
	env := slices.DeleteFunc(environ, func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case envPassword, envSentinelPassword:
			return true
		case envURL:
			u, err := url.Parse(value)
			if err != nil {
				return true
			}
			_, secret := u.User.Password()
			return secret
		}
		return false
	})
	if fenceName != "" {
		env = append(env, fenceName+"="+strconv.FormatInt(fence, 10)) // the last of equal names counts
	}
	return env
}
