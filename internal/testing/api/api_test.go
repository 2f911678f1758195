// Package api holds what users can import, a file for each package, so that a review sees
// each change of it.
package api

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var aliases = regexp.MustCompile(`(?m)^type \w+ += \w+\..*$`)

func TestPublicAPI(t *testing.T) {
	for _, pkg := range []string{".", "rlock", "rwlock", "fair", "multilock", "semaphore", "election", "holdfasttest", "pubsub", "watchdog", "scripts",
		"observe/otelholdfast", "observe/promholdfast", "adapters/cronholdfast", "adapters/gocronholdfast",
		"adapters/goredisholdfast", "adapters/httpholdfast", "adapters/sqlholdfast", "adapters/valkeyholdfast"} {
		file := filepath.Join("testdata", strings.Replace(filepath.Base(pkg), ".", "holdfast", 1)+".txt")
		is := public(t, filepath.Join("..", "..", "..", pkg))
		require.Empty(t, aliases.FindString(is), "a type has one name")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(is), 0o644))
			continue
		}
		was := redistest.Must(os.ReadFile(file))(t)
		require.Equal(t, string(was), is, "go test ./internal/testing/api -update writes it anew")
	}
}

// public returns the declarations of a package that users see, without comments.
func public(t *testing.T, dir string) string {
	t.Helper()
	fset, files := token.NewFileSet(), []*ast.File(nil)
	names := redistest.Must(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f := redistest.Must(parser.ParseFile(fset, name, nil, 0))(t)
			files = append(files, f)
		}
	}
	p := redistest.Must(doc.NewFromFiles(fset, files, dir))(t)
	var b strings.Builder
	add := func(decl ast.Decl) {
		require.NoError(t, format.Node(&b, fset, decl))
		b.WriteString("\n\n")
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			add(v.Decl)
		}
	}
	funcs := func(all []*doc.Func) {
		for _, f := range all {
			add(f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		add(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	return b.String()
}

// Each path through the code in CONTRIBUTING has at most ten steps, enters no package twice, and
// names functions that there are; also behind its steps, as `file.go:function`.
func TestPathOfALock(t *testing.T) {
	page := redistest.Must(os.ReadFile("../../../CONTRIBUTING.md"))(t)
	paths := regexp.MustCompile(`(?m)^## `).Split(string(page), -1)
	paths = slices.DeleteFunc(paths, func(section string) bool { return !strings.HasPrefix(section, "Path of ") })
	require.Len(t, paths, 6)
	const function = `(?m)^func (\(.*\) )?%s[[(]`
	for _, path := range paths {
		steps := regexp.MustCompile("(?m)^[0-9]+\\. `([^`]*)/([^`/]*)`(.*)$").FindAllStringSubmatch(path, -1)
		require.NotEmpty(t, steps)
		require.LessOrEqual(t, len(steps), 10)
		last, left := "", map[string]bool{}
		for _, s := range steps {
			folder, file := s[1], s[2]
			require.False(t, left[folder], "%s is entered again", folder)
			if last != folder {
				left[last], last = true, folder
			}
			source := redistest.Must(os.ReadFile("../../../" + folder + "/" + file))(t)
			for _, name := range regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z]+)`").FindAllStringSubmatch(s[3], -1) {
				require.Regexp(t, fmt.Sprintf(function, name[1]), string(source), "%s/%s", folder, file)
			}
		}
		left[last] = true
		for _, name := range regexp.MustCompile("`([a-z_]+\\.go):([A-Za-z]+)`").FindAllStringSubmatch(path, -1) {
			var sources []byte
			for folder := range left {
				source, _ := os.ReadFile("../../../" + folder + "/" + name[1]) // one of the folders has it
				sources = append(sources, source...)
			}
			require.Regexp(t, fmt.Sprintf(function, name[2]), string(sources), name[1])
		}
	}
}
