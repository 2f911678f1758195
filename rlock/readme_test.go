package rlock_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/scripts"
)

func TestReadmeShowsCodeOfTheExamples(t *testing.T) {
	examples := readFile(t, "example_test.go") + readFile(t, "../multilock/example_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readFile(t, "../README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		indented := regexp.MustCompile("(?m)^(.)").ReplaceAllString(b[1], "\t$1")
		require.Contains(t, examples, indented)
	}
}

func TestReadmeNamesAllOptionsWithTheirDefaults(t *testing.T) {
	constants := map[string]time.Duration{
		"WithLease":         rlock.DefaultLease,
		"WithLocalHandover": rlock.DefaultLocalHandover,
		"WithFenceExpiry":   rlock.DefaultFenceExpiry,
	}
	rows := readmeTable(t, "Options")
	var options []string
	for _, d := range append(declarations(t, "options.go"), declarations(t, "shared.go")...) {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() {
			continue
		}
		name := f.Name.Name
		options = append(options, name)
		if !strings.HasPrefix(name, "With") {
			continue // of a call: no default
		}
		require.Contains(t, rows, name)
		require.Contains(t, strings.Join(strings.Fields(f.Doc.Text()), " "), "Default "+rows[name])
		if d, ok := constants[name]; ok {
			require.Equal(t, spell(d), rows[name], name)
		}
	}
	require.ElementsMatch(t, options, slices.Collect(maps.Keys(rows)))
}

func TestReadmeNamesAllErrors(t *testing.T) {
	var errs []string
	for _, d := range declarations(t, "../errors.go") {
		if vars, ok := d.(*ast.GenDecl); ok && vars.Tok == token.VAR {
			for _, s := range vars.Specs {
				errs = append(errs, s.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	require.ElementsMatch(t, errs, slices.Collect(maps.Keys(readmeTable(t, "Errors"))))
}

func TestReadmeLinksToWhatIsThere(t *testing.T) {
	for _, l := range regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(readFile(t, "../README.md"), -1) {
		require.FileExists(t, filepath.Join("..", l[1]))
	}
}

func TestReadmeUserHasExactlyTheCommandsOfTheScriptsAndOfTheConnection(t *testing.T) {
	var commands []string
	for _, word := range readmeUser(t) {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	connection := []string{"ping", "subscribe", "unsubscribe"}
	require.ElementsMatch(t, append(connection, scripts.Commands()...), commands)
}

// Redis logs each command, key and channel that it refuses, also where the
// refusal shows only in a slower wake-up.
func TestF32_ReadmeUserIsRefusedNothing(t *testing.T) {
	withoutFencing := slices.DeleteFunc(readmeUser(t), func(word string) bool {
		return word == "~redisson_lock_token:*" || word == "+get" || word == "+time"
	})
	for name, c := range map[string]struct {
		user []string
		opts []rlock.Option
	}{
		"with fencing":    {readmeUser(t), []rlock.Option{rlock.WithFencing()}},
		"without fencing": {withoutFencing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			s.Do(t, c.user...)
			login := func(o *rueidis.ClientOption) { o.Username, o.Password = "shop", "secret" }
			here, there := s.Client(t, login), s.Client(t, login)
			opts := append([]rlock.Option{rlock.WithLease(1500 * time.Millisecond)}, c.opts...)
			for _, key := range []string{"sku:42", "sku:{42}"} {
				useEverything(t, s, key, userLocker(t, here, opts...), userLocker(t, there, opts...))
				_, err := scripts.NewNode(here).CleanUp(t.Context(), key, "somebody")
				require.NoError(t, err)
			}

			reply := s.Do(t, "ACL", "LOG")
			log, err := reply.ToArray()
			require.NoError(t, err)
			for _, m := range log {
				entry, err := m.AsStrMap()
				require.NoError(t, err)
				require.Contains(t, []string{"cluster|slots", "cluster|shards", "client|setinfo"}, entry["object"])
			}
		})
	}
}

// useEverything makes each kind of call to Redis: take, renew, enter again,
// inspect, fail, wait, be woken, release, free by force.
func useEverything(t *testing.T, s *redistest.Server, key string, here, there *rlock.Locker) {
	ctx := t.Context()
	lease, err := here.Lock(ctx, key)
	require.NoError(t, err)
	before := lease.Deadline()
	require.Eventually(t, func() bool { return lease.Deadline().After(before) }, 5*time.Second, time.Millisecond)
	require.NoError(t, here.Do(lease.Bind(ctx), key, func(context.Context) error {
		status, err := there.Inspect(ctx, key)
		require.Equal(t, 2, status.Entries)
		return err
	}))
	_, err = there.TryLock(ctx, key)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)

	woken := make(chan error, 1)
	go func() { woken <- there.Do(ctx, key, func(context.Context) error { return nil }) }()
	listeners := func(n int64) func() bool {
		return func() bool {
			reply, err := s.TryDo("PUBSUB", "NUMSUB", scripts.Channel(key))
			if err != nil {
				return false
			}
			m, err := reply.AsIntMap()
			return err == nil && m[scripts.Channel(key)] == n
		}
	}
	require.Eventually(t, listeners(1), 5*time.Second, time.Millisecond)
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, <-woken)
	require.Eventually(t, listeners(0), 5*time.Second, time.Millisecond)

	_, err = here.Lock(ctx, key)
	require.NoError(t, err)
	held, err := there.ForceUnlock(ctx, key)
	require.NoError(t, err)
	require.True(t, held)
}

func userLocker(t *testing.T, c rueidis.Client, opts ...rlock.Option) *rlock.Locker {
	l, err := rlock.New(c, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// readmeUser returns the words of the README's ACL command.
func readmeUser(t *testing.T) []string {
	line := regexp.MustCompile("(?m)^ACL SETUSER .*$").FindString(readFile(t, "../README.md"))
	require.NotEmpty(t, line)
	return strings.Fields(line)
}

// readmeTable returns, for each row of a section of the README whose first cell is
// code, its second cell.
func readmeTable(t *testing.T, section string) map[string]string {
	_, text, found := strings.Cut(readFile(t, "../README.md"), "\n## "+section+"\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(text, -1) {
		rows[m[1]] = m[2]
	}
	return rows
}

// spell writes d as prose does: 10 ms, 30 s, 7 days.
func spell(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d%time.Second == 0:
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d ms", d/time.Millisecond)
}

func declarations(t *testing.T, file string) []ast.Decl {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	return f.Decls
}

func readFile(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
