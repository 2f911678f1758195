// Package demo is what the examples share: their processes, and their Redis.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	numberEnv   = "HOLDFAST_EXAMPLE_PROCESS" // set in processes that Run started
	stopTimeout = time.Minute                // for a process to end by itself
	glance      = 2 * time.Millisecond       // between two looks at what is waited for
)

// ErrKilled is in the error of [Run] if the process was killed.
var ErrKilled = errors.New("killed")

// Main is the main function of an example. The program that the user starts runs parent,
// and the processes that it starts with [Run] run child. The exit status is 1 after an
// error and 2 after a bad flag.
//
// Ctrl-C ends the context of parent. The context of a child ends with that of its Run,
// and when the parent dies.
func Main(parent func(context.Context) error, child func(ctx context.Context, number int) error) {
	flag.Parse()
	if flag.NArg() > 0 {
		fail(2, fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	var err error
	if number, no := strconv.Atoi(os.Getenv(numberEnv)); no == nil {
		err = asChild(number, child)
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
		err = parent(ctx)
	}
	if err != nil {
		fail(1, err)
	}
}

func asChild(number int, child func(context.Context, int) error) error {
	signal.Ignore(os.Interrupt) // a terminal sends Ctrl-C to all processes, but the parent decides
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the input ends when the parent closes it or dies
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := child(ctx, number); err != nil && ctx.Err() == nil {
		return fmt.Errorf("process %d: %w", number, err)
	}
	return nil
}

func fail(status int, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(status)
}

// Run starts this program again as the process with that number. The process gets the
// arguments of this one, and then more. Run returns when it has ended.
func Run(ctx context.Context, number int, more ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, slices.Concat(os.Args[1:], more)...)
	c.Env = append(os.Environ(), numberEnv+"="+strconv.Itoa(number))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	c.Cancel, c.WaitDelay = in.Close, stopTimeout
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
		err = ErrKilled
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", number, err)
	}
	return nil
}

// Die kills this process as kill -9 does: nothing is cleaned up.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal arrives
}

// Group is functions that run side by side. The first error ends the context of all.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	all    sync.WaitGroup
}

// NewGroup returns a group and the context of its functions. The caller must call Wait.
func NewGroup(ctx context.Context) (*Group, context.Context) {
	g := new(Group)
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g, g.ctx
}

// Go runs f.
func (g *Group) Go(f func() error) {
	g.all.Go(func() {
		if err := f(); err != nil {
			g.cancel(err)
		}
	})
}

// Wait returns when all functions have returned. Its error is the first of theirs, or that of
// the context given to NewGroup.
func (g *Group) Wait() error {
	g.all.Wait()
	defer g.cancel(nil)
	return context.Cause(g.ctx)
}

// Until returns when count has reached n.
func Until(ctx context.Context, n int, count func(context.Context) (int, error)) error {
	for {
		if at, err := count(ctx); err != nil || at >= n {
			return err
		}
		if err := Sleep(ctx, glance); err != nil {
			return err
		}
	}
}

// Sleep returns nil after d, or the cause of the end of ctx if that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
