package redistest

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// version is what the program that [Start] runs says about itself.
type version struct {
	text  string // "Redis 6.2.14"
	major int    // Valkey began with 7, as a copy of Redis 7.2
}

// installed asks program for its version, once in a process.
var installed = sync.OnceValues(func() (version, error) {
	out, err := exec.Command(program(), "--version").Output()
	if err != nil {
		return version{}, fmt.Errorf("%s --version: %w", program(), err)
	}
	return parseVersion(string(out))
})

var versionLine = regexp.MustCompile(`^(\S+) server v=((\d+)\.\S+)`)

func parseVersion(line string) (version, error) {
	m := versionLine.FindStringSubmatch(line)
	if m == nil {
		return version{}, fmt.Errorf("%s --version: not understood: %q", program(), line)
	}
	major, err := strconv.Atoi(m[3])
	return version{m[1] + " " + m[2], major}, err
}

// Before7 reports whether [Start] runs a server before Redis 7.0.
func Before7() bool {
	v, err := installed()
	return err == nil && v.major < 7
}

// NeedRedis7 skips a test of what came with Redis 7.0, and so is in every Valkey, where
// [Start] runs an older server. why says what that lacks or does.
func NeedRedis7(t testing.TB, why string) {
	t.Helper()
	v, err := installed()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	if v.major < 7 {
		t.Skip("redistest: needs Redis 7.0, not", v.text+":", why)
	}
}

// from7 are directives that came with Redis 7.0 and for which there was nothing before.
var from7 = map[string]bool{"--loading-process-events-interval-bytes": true}

// before7 is what servers before Redis 7.0 have in place of a directive that came with
// it; "": they do without.
var before7 = map[string]string{
	"--busy-reply-threshold":     "--lua-time-limit",
	"--cluster-port":             "", // it is port + 10000
	"--enable-debug-command":     "", // DEBUG is allowed
	"--enable-protected-configs": "", // they are not protected
}

// understood returns args as a server of that version understands them. A directive
// and its values are arguments of their own.
func (v version) understood(args []string) []string {
	if v.major >= 7 {
		return args
	}
	var all []string
	for len(args) > 0 {
		next := 1 + slices.IndexFunc(args[1:], func(s string) bool { return strings.HasPrefix(s, "--") })
		if next == 0 {
			next = len(args)
		}
		if old, ok := before7[args[0]]; !ok {
			all = append(all, args[:next]...)
		} else if old != "" {
			all = append(append(all, old), args[1:next]...)
		}
		args = args[next:]
	}
	return all
}
