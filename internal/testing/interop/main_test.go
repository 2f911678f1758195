package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
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

// javaAgent builds the jar, once, with the version of Redisson that REDISSON names or that
// of pom.xml.
var javaAgent = sync.OnceValue(func() (err error) {
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return errNoJava
		}
	}
	args := []string{"-q", "-B", "-ntp", "package"}
	if version := os.Getenv("REDISSON"); version != "" {
		args = append(args, "-Dredisson.version="+version)
	}
	var out []byte
	for range 3 { // what it loads may not be had for a moment
		build := exec.Command("mvn", args...)
		build.Dir = "java"
		if out, err = build.CombinedOutput(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("mvn package: %w\n%s", err, out)
})
