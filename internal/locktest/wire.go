package locktest

import (
	"crypto/sha1"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// await is for what no event tells: it polls for a while, generously.
func await(t testing.TB, what func() bool, why ...any) {
	t.Helper()
	require.Eventually(t, what, 20*time.Second, time.Millisecond, why...)
}

// MoreAtOnce lets more parallel tests run at once than there are processors, unless
// -parallel says how many: they mostly wait. It is called in TestMain.
func MoreAtOnce() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
}

// poke fills a one-slot channel.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// number is the reply to a command of the administrator.
func number(t testing.TB, s *redistest.Server, args ...string) int {
	t.Helper()
	m := s.Do(t, args...)
	n, err := m.ToInt64()
	require.NoError(t, err)
	return int(n)
}

// exists tells whether the key is there.
func exists(t testing.TB, s *redistest.Server, key string) bool {
	t.Helper()
	return number(t, s, "EXISTS", key) == 1
}

// scriptTexts gives the text of each script by its name, from the files of this
// module.
var scriptTexts = sync.OnceValue(func() map[string]string {
	files, err := filepath.Glob(filepath.Join(moduleRoot(), "scripts", "*.lua"))
	if err != nil || len(files) == 0 {
		panic("locktest: no scripts")
	}
	texts := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		texts[strings.TrimSuffix(filepath.Base(f), ".lua")] = string(text)
	}
	for name, text := range texts {
		if strings.HasPrefix(name, "fair_") && strings.Contains(text, "call(") && !strings.Contains(text, "redis.call(") {
			texts[name] = texts["fair"] + text
		}
	}
	return texts
})

// moduleRoot is the folder of go.mod, found from that of the package under test.
func moduleRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			panic("locktest: not inside the module")
		}
		dir = up
	}
}

// scriptNames gives each script's name by its text's SHA-1. Those that do the same
// for fenced locks and for the fair queue have the names of the plain ones.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for name, text := range scriptTexts() {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "fair_"), "_fenced")
		names[sha(text)] = strings.Replace(name, "leave", "clean_up", 1)
	}
	return names
})

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// verb names a command as a proxy sees it: that of a script by the script's file
// (acquire, clean_up, …), any other by its first word in lower case.
func verb(cmd []string) string {
	word := strings.ToLower(cmd[0])
	switch word {
	case "evalsha":
		return scriptNames()[cmd[1]]
	case "eval":
		return scriptNames()[sha(cmd[1])]
	}
	return word
}

// isVerb returns a matcher for proxies.
func isVerb(name string) func(cmd []string) bool {
	return func(cmd []string) bool { return verb(cmd) == name }
}
