package holdfast_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestReadmeIsShort(t *testing.T) {
	require.LessOrEqual(t, len(readFile(t, "README.md")), 9<<10, "move it to docs/")
}

// The first program that a newcomer sees builds as it stands, and works.
func TestReadmeProgramRuns(t *testing.T) {
	t.Parallel()
	program := goBlocks(t, "README.md")[0].code
	server := redistest.Start(t)
	const address = "127.0.0.1:6379"
	require.Contains(t, program, address)
	binary := build(t, strings.ReplaceAll(program, address, server.Addr()))
	run := func() string {
		out, err := exec.Command(binary).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Equal(t, "sold\n", run())

	locker := locktest.Opened(rlock.New(server.Client(t)))(t)
	require.NoError(t, locker.Do(t.Context(), "shop:sku:42", func(context.Context) error {
		require.Equal(t, "busy, please come back later\n", run())
		return nil
	}))
}

// Code in the pages is a program, declarations, or the body of a function with the parameters below.
func TestDocsCodeCompiles(t *testing.T) {
	t.Parallel()
	bodies := `package bodies

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/semaphore"
	"github.com/redis/rueidis"
)

var _ = []any{errors.Is, fmt.Println, slog.Default, time.Now, tls.Dial, net.Dial, holdfast.WaitAtMost, multilock.New, rlock.New} // used
`
	declares := regexp.MustCompile(`(?m)^(type|func) \w`)
	for _, page := range pages(t) {
		for _, block := range goBlocks(t, page) {
			switch {
			case strings.HasPrefix(block.code, "package main\n"):
				build(t, block.code)
				continue
			case declares.MatchString(block.code):
				bodies += fmt.Sprintf("//line %s:%d\n%s", page, block.line, block.code)
				continue
			}
			bodies += "func _(ctx context.Context, clients []rueidis.Client, locker interface{ holdfast.Locker; holdfast.Operator }, stock, orders holdfast.Locker, " +
				"local *sync.Mutex, work func(context.Context) error) error {\n{\n" +
				fmt.Sprintf("//line %s:%d\n%s}\nreturn nil\n}\n", page, block.line, block.code)
		}
	}
	build(t, bodies)
}

// build builds a program in this module, and returns the binary.
func build(t *testing.T, program string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
	binary = filepath.Join(dir, "program")
	out, err := exec.Command("go", "build", "-o", binary, file).CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		text := withoutCode(readFile(t, page))
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !slices.Contains(anchors(readFile(t, target)), anchor) {
				t.Errorf("%s: %s: no such heading", page, l[1])
			}
		}
	}
}

// The programs of the tasks are there, and short enough to be read.
func TestTasksHaveShortPrograms(t *testing.T) {
	commands := regexp.MustCompile("\\[`go run (?:-C |./)(examples/\\w+)( \\.)?`\\]").FindAllStringSubmatch(readFile(t, "docs/tasks.md"), -1)
	require.Len(t, commands, 6)
	for _, c := range commands {
		program := readFile(t, c[1]+"/main.go")
		_, err := os.Stat(c[1] + "/go.mod")
		require.Equal(t, c[2] != "", err == nil, "%s: -C is for modules", c[1])
		require.Contains(t, program, "//\t"+strings.Trim(c[0], "[`]")+" ", "its comment")
		require.LessOrEqual(t, strings.Count(program, "\n"), 150, c[1])
		require.Len(t, locktest.Must(filepath.Glob(c[1]+"/*.go"))(t), 2, "%s: the program and its test", c[1])
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	require.Equal(t, []string{"a-b", "options-of-rlocknew", "errlost-what-now", "a-b-1", "a_b-über-1-2"},
		anchors("# A b\ntext\n## Options of `rlock.New`\n```\n# no heading\n```\n### ErrLost: what now?\n#  A  b #\n## A_b, Über 1-2\n"))
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	seen := map[string]int{}
	for _, h := range regexp.MustCompile(`(?m)^#{1,6} +(.*?)[ #]*$`).FindAllStringSubmatch(withoutFences(text), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.Join(strings.Fields(h[1]), " "))
		n := seen[slug]
		if seen[slug]++; n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		all = append(all, slug)
	}
	return all
}

func withoutFences(text string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
}

func withoutCode(text string) string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(withoutFences(text), "")
}

// The tables have a row for each option, with the default that its comment says.
func TestDocsNameAllOptionsWithTheirDefaults(t *testing.T) {
	shared := table(t, "Options of every kind")
	all := maps.Clone(shared)
	maps.Copy(all, table(t, "Options for replicas and clusters"))
	for dir, rows := range map[string]map[string]string{
		".": all, "rlock": {}, "rwlock": {}, "semaphore": {}, "fair": table(t, "Options of fair.New"), "multilock": table(t, "Options of multilock.New"),
	} {
		for name, doc := range functions(t, dir) {
			if !strings.HasPrefix(name, "With") {
				continue
			}
			require.Contains(t, rows, name, dir)
			if rows[name] != "" {
				require.Contains(t, doc, "Default "+rows[name], "%s.%s", dir, name)
			}
			delete(rows, name)
		}
		require.Empty(t, rows, dir)
	}
	var ofCall []string
	for _, d := range declarations(t, ".") {
		if f, ok := d.(*ast.FuncDecl); ok && f.Type.Results != nil {
			if of, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && of.Name == "LockOption" {
				ofCall = append(ofCall, f.Name.Name)
			}
		}
	}
	require.ElementsMatch(t, ofCall, slices.Collect(maps.Keys(table(t, "Options of a call"))))

	fairs, quorums := table(t, "Options of fair.New"), table(t, "Options of multilock.New")
	for _, c := range []struct {
		row string
		is  time.Duration
	}{
		{shared["WithLease"], holdfast.DefaultLease},
		{shared["WithLocalHandover"], holdfast.DefaultLocalHandover},
		{shared["WithFenceExpiry"], holdfast.DefaultFenceExpiry},
		{fairs["WithWaiterTTL"], fair.DefaultWaiterTTL},
		{fairs["WithGrantLease"], fair.DefaultGrantLease},
		{quorums["WithNodeTimeout"], multilock.DefaultNodeTimeout},
	} {
		require.Equal(t, spell(c.is), c.row)
	}
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

func TestDocsNameAllErrors(t *testing.T) {
	var errs []string
	for _, d := range declarations(t, ".") {
		if vars, ok := d.(*ast.GenDecl); ok && vars.Tok == token.VAR {
			for _, s := range vars.Specs {
				if name := s.(*ast.ValueSpec).Names[0].Name; strings.HasPrefix(name, "Err") && name != "ErrHeld" { // which is of one node
					errs = append(errs, name)
				}
			}
		}
	}
	require.ElementsMatch(t, errs, slices.Collect(maps.Keys(table(t, "Errors"))))
}

func TestDocsNameAllEvents(t *testing.T) {
	var fields, rows []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[holdfast.Observer]()) {
		fields = append(fields, f.Name)
	}
	_, text, found := strings.Cut(readFile(t, "docs/usage.md"), "\n| event | use it for |\n")
	require.True(t, found)
	for row := range strings.Lines(text) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 { // the table has ended
			break
		}
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			rows = append(rows, name[1])
		}
	}
	require.ElementsMatch(t, fields, rows)
}

// table returns, for each row of a section of the pages on errors and options whose first cell is
// code, its second cell.
func table(t *testing.T, section string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, "docs/errors.md")+readFile(t, "docs/options.md"), "# "+section+"\n")
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "\n#")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*?) ?\\|").FindAllStringSubmatch(text, -1) {
		rows[m[1]] = m[2]
	}
	return rows
}

// functions returns the exported functions of a package, with their comments.
func functions(t *testing.T, dir string) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, d := range declarations(t, dir) {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
			docs[f.Name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
		}
	}
	return docs
}

func declarations(t *testing.T, dir string) (all []ast.Decl) {
	t.Helper()
	files := locktest.Must(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			f := locktest.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
			all = append(all, f.Decls...)
		}
	}
	return all
}

// pages are what users read.
func pages(t *testing.T) []string {
	t.Helper()
	docs := locktest.Must(fs.Glob(os.DirFS("."), "docs/*.md"))(t)
	require.NotEmpty(t, docs)
	return append([]string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}, docs...)
}

// goBlock is Go code in a page, and the line on which it begins.
type goBlock struct {
	code string
	line int
}

func goBlocks(t *testing.T, page string) (blocks []goBlock) {
	t.Helper()
	text := readFile(t, page)
	for _, at := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		blocks = append(blocks, goBlock{text[at[2]:at[3]], 1 + strings.Count(text[:at[2]], "\n")})
	}
	return blocks
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	return string(locktest.Must(os.ReadFile(file))(t))
}
