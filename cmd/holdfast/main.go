// Command holdfast runs programs under a lock in Redis, and shows, explains and frees locks.
// Its manual is docs/command.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redact"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The exit statuses of holdfast itself. Where sysexits.h has one that fits, it is that, as
// for flock(1).
const (
	statusNo          = 1            // the answer is no, such as "it was free already"
	statusUsage       = 64           // EX_USAGE
	statusAway        = 69           // EX_UNAVAILABLE
	statusRefused     = 70           // EX_SOFTWARE: an error that waiting cannot cure
	statusNotAcquired = 75           // EX_TEMPFAIL
	statusLost        = 79           // the first one after those of sysexits.h
	statusHurts       = 80           // doctor has found what hurts locks
	statusNotRunnable = 126          // as shells say it
	statusNotFound    = 127          // as shells say it
	statusSignal      = 128 + killed // and the number of the signal, as shells say it

	killed = 256 // is added to the status of what a signal has ended, until the exit
)

// failure is an error with its exit status. All other errors are of usage.
type failure struct {
	status int
	err    error // nil: nothing is left to say
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }
func (f *failure) Unwrap() error { return f.err }

// failed returns the failure of a call to Redis.
func failed(err error) *failure {
	status := statusRefused
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired), errors.Is(err, holdfast.ErrTooManyWaiters):
		status = statusNotAcquired
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown):
		status = statusAway
	case !wire.OutcomeOf(err).Final():
		status, err = statusAway, fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
	}
	return &failure{status, readable(err)}
}

// readable is what people get to read of an error: no script, and nothing that a server repeats.
func readable(err error) error {
	if errors.Is(err, holdfast.ErrWrongType) {
		return holdfast.ErrWrongType // the server's text has the hash of a script
	}
	return redact.Error(err)
}

// written returns the failure of a write to the output.
func written(err error) error {
	if err == nil {
		return nil
	}
	return &failure{statusRefused, err}
}

var pid = os.Getpid() // a test says that it is 1

func main() {
	runtime.LockOSThread() // this thread starts the child: the child's parent-death signal comes at the end of the thread
	status := execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	// The kernel shields process 1 from signals; its caller sees the status only.
	if status == statusSignal+int(syscall.SIGINT) && !signal.Ignored(os.Interrupt) && pid != 1 {
		// A shell ends its script at Ctrl-C only if the program has died of the signal.
		signal.Reset(os.Interrupt)
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		time.Sleep(time.Second) // the signal comes first
	}
	os.Exit(status &^ killed)
}

// execute runs holdfast, except that the command of run has the input and output of this
// process.
func execute(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	root := newRoot()
	root.SetArgs(twoDashes(root, args))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	refuseUnknown(root)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	f := (*failure)(nil)
	if !errors.As(err, &f) {
		fmt.Fprintf(stderr, "holdfast: %v\nusage: %s\n", err, cmd.UseLine())
		return statusUsage
	}
	if f.err != nil {
		complain(stderr, f.err)
	}
	return f.status
}

// refuseUnknown makes cobra's own commands refuse names that they do not know. Left alone,
// they print help, and succeed.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		case "completion": // its arguments are looked at only if it can run
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// twoDashes gives long flags a second dash where they have one, as with Go's own commands.
func twoDashes(root *cobra.Command, args []string) []string {
	long := map[string]bool{"-help": true, "-version": true} // which cobra adds later
	name := func(f *pflag.Flag) { long["-"+f.Name] = true }
	root.PersistentFlags().VisitAll(name)
	for _, c := range root.Commands() {
		c.Flags().VisitAll(name)
	}
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" { // the rest is not ours
			break
		}
		if flag, _, _ := strings.Cut(arg, "="); long[flag] {
			args[i] = "-" + arg
		}
	}
	return args
}

// complain prints an error. Those of the library already name it.
func complain(w io.Writer, err error) {
	fmt.Fprintln(w, "holdfast:", strings.TrimPrefix(err.Error(), "holdfast: "))
}

// outputFlag adds -o to a command: a format for people, the default, or JSON.
func outputFlag(c *cobra.Command, asJSON *bool, people, orJSON string) {
	c.Flags().FuncP("output", "o", "`FORMAT`: "+people+" (default)"+orJSON, func(format string) error {
		if *asJSON = format == "json"; !*asJSON && format != people {
			return fmt.Errorf("neither %s nor json", people)
		}
		return nil
	})
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{people, "json"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for an unknown flag
}

func newRoot() *cobra.Command {
	server := &server{}
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Distributed locks on Redis for the shell",
		Long: `Holdfast runs commands under locks in Redis, shows and frees locks, and finds what in a
Redis hurts them. The locks are those of the Go library holdfast and of Redisson for Java.`,
		Version:       version(debug.ReadBuildInfo()),
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableAutoGenTag: true, // of cobra, in the manual pages
	}
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	server.flags(root.PersistentFlags())
	for _, file := range []string{"password-file", "tls-ca", "tls-cert", "tls-key"} {
		_ = root.RegisterFlagCompletionFunc(file, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // fails only for an unknown flag
	}
	root.AddCommand(newRun(server), newList(server), newShow(server), newUnlock(server), newResize(server), newDoctor(server), newMan())
	return root
}
