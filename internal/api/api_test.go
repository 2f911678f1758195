// Package api holds what users can import, a file for each package, so that a review sees
// each change of it.
package api

import (
	"flag"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var aliases = regexp.MustCompile(`(?m)^type \w+ += (\w+)\..*$`)

func TestPublicAPI(t *testing.T) {
	for _, pkg := range []string{".", "rlock", "fair", "multilock", "holdfasttest", "pubsub", "watchdog", "scripts",
		"observe/otelholdfast", "observe/promholdfast", "adapters/cronholdfast", "adapters/gocronholdfast",
		"adapters/httpholdfast", "adapters/sqlholdfast"} {
		file := filepath.Join("testdata", strings.Replace(filepath.Base(pkg), ".", "holdfast", 1)+".txt")
		is := public(t, filepath.Join("..", "..", pkg))
		for _, alias := range aliases.FindAllStringSubmatch(is, -1) {
			require.Equal(t, "holdfast", alias[1], "users cannot read the fields: %s", alias[0])
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(is), 0o644))
			continue
		}
		was, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(was), is, "go test ./internal/api -update writes it anew")
	}
}

// public returns the declarations of a package that users see, without comments.
func public(t *testing.T, dir string) string {
	t.Helper()
	fset, files := token.NewFileSet(), []*ast.File(nil)
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, name, nil, 0)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	require.NoError(t, err)
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
