package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	runGoAgent()
	locktest.MoreAtOnce()
	goleak.VerifyTestMain(m)
}

// jar is the Java agent. What it needs is in the folder lib beside it.
const jar = "java/target/agent.jar"

var errNoJava = errors.New("java, javac or mvn is not on the PATH; install Java 17 and Maven to run this test")

// needJava skips the test unless INTEROP=1, and without Java; CI has it.
func needJava(t testing.TB) {
	t.Helper()
	if os.Getenv("INTEROP") != "1" {
		t.Skip("make test-interop runs it")
	}
	switch err := javaAgent(); {
	case errors.Is(err, errNoJava) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// javaAgent sees to it, once, that the jar is there and newer than its sources.
var javaAgent = sync.OnceValue(func() error {
	if _, err := exec.LookPath("java"); err != nil {
		return errNoJava
	}
	fresh, err := built()
	if err != nil || fresh {
		return err
	}
	for _, program := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return errNoJava
		}
	}
	for tries := 3; ; tries-- { // what it loads may not be had for a moment
		build := exec.Command("mvn", "-q", "-B", "-ntp", "package")
		build.Dir = "java"
		out, err := build.CombinedOutput()
		if err == nil {
			return nil
		}
		if tries == 1 {
			return fmt.Errorf("mvn package: %w\n%s", err, out)
		}
	}
})

// built reports whether the jar is newer than all that it is made of.
func built() (bool, error) {
	made, err := os.Stat(jar)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fresh := true
	err = filepath.WalkDir("java", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "target" {
			return filepath.SkipDir
		}
		if source := d.Name() == "pom.xml" || strings.HasSuffix(d.Name(), ".java"); !source {
			return nil
		}
		info, err := d.Info()
		fresh = fresh && err == nil && info.ModTime().Before(made.ModTime().Add(time.Millisecond))
		return err
	})
	return fresh, err
}
