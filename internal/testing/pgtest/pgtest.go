// Package pgtest starts real PostgreSQL servers for tests. It is for tests only.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

const startTimeout = 2 * time.Minute

// Start makes an empty database in a temporary directory and serves it on a Unix socket
// there, until the test ends. It returns its URL. What the database is told is not safe from
// a crash of the machine.
//
// PostgreSQL refuses to run as root: then it runs as the user postgres. Without PostgreSQL the
// test is skipped, or fails if the environment variable CI is "true".
func Start(t testing.TB) (address string) {
	t.Helper()
	bin, err := programs()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("pgtest:", err)
		}
		t.Skip("pgtest:", err)
	}
	dir := redistest.Must(os.MkdirTemp("", "pg"))(t) // t.TempDir may be too long for a socket
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr := redistest.Must(owner(dir))(t)
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, attr
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("pgtest: initdb: %v\n%s", err, out)
	}
	t.Cleanup(redistest.Must(serve(bin, dir, data, attr))(t))
	return "postgres:///postgres?user=test&host=" + url.QueryEscape(dir)
}

// programs returns the directory of PostgreSQL's programs, which Debian leaves off the PATH.
func programs() (string, error) {
	found, err := exec.LookPath("initdb")
	if err != nil {
		debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
		if len(debian) == 0 {
			return "", fmt.Errorf("PostgreSQL is not installed: %w", err)
		}
		found = debian[len(debian)-1]
	}
	found, err = filepath.EvalSymlinks(found)
	return filepath.Dir(found), err
}

// owner gives dir to the user of PostgreSQL, and returns it; nil: the present one.
func owner(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return attr, os.Chown(dir, int(uid), int(gid))
}

// serve starts a server and returns when it serves. The shell stops it when its input ends:
// by stop, or by the death of this process.
func serve(bin, dir, data string, attr *syscall.SysProcAttr) (stop func(), err error) {
	c := exec.Command("sh", "-c", `"$@" & read -r _; kill -QUIT $!; wait`, "sh", filepath.Join(bin, "postgres"),
		"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	var out redistest.Log
	c.Dir, c.SysProcAttr, c.Stdout, c.Stderr = dir, attr, &out, &out
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = c.Wait() // the status of a server that was told to stop says nothing
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !strings.Contains(out.String(), "ready to accept connections") {
		select {
		case <-poll.C:
		case <-ctx.Done():
			stop()
			return nil, fmt.Errorf("postgres: not ready after %v\n%s", startTimeout, out.String())
		}
	}
	return stop, nil
}
