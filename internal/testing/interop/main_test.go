package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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

// redis is where locks are kept: one server, or a Redis Cluster.
type redis struct {
	addrs  string                                           // for agents; those of a cluster have commas between
	of     func(t testing.TB, key string) *redistest.Server // the server that has a key
	numsub string                                           // of PUBSUB: counts the listeners of a lock
}

func (r redis) clustered() bool { return strings.Contains(r.addrs, ",") }

// one is the Redis of a single server.
func one(s *redistest.Server) redis {
	return redis{s.Addr(), func(testing.TB, string) *redistest.Server { return s }, "NUMSUB"}
}

// cluster starts a Redis Cluster of three masters with shard channels.
func cluster(t testing.TB) redis { return clusterWith(t, "SHARDNUMSUB") }

// classicCluster starts one that refuses shard channels, and also tells nobody whether it has
// them. So both languages use classic channels.
func classicCluster(t testing.TB) redis {
	return clusterWith(t, "NUMSUB",
		"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-pubsub|shardnumsub", "-spublish", "-ssubscribe")
}

func clusterWith(t testing.TB, numsub string, args ...string) redis {
	c := redistest.StartCluster(t, 3, 0, args...)
	var addrs []string
	for _, s := range c.Masters(t) {
		addrs = append(addrs, s.Addr())
	}
	return redis{strings.Join(addrs, ","), c.Owner, numsub}
}

// onServerAndCluster runs a test on one server, and on a Redis Cluster.
func onServerAndCluster(t *testing.T, run func(t *testing.T, s redis)) {
	needJava(t)
	t.Run("Server", func(t *testing.T) { run(t, one(redistest.Start(t))) })
	t.Run("Cluster", func(t *testing.T) { run(t, cluster(t)) })
}
