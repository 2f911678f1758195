package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// found returns the first group of a pattern in the output of a program or in a file; "" if
// there is none.
func found(pattern string) func(text []byte, err error) string {
	return func(text []byte, err error) string {
		if m := regexp.MustCompile(pattern).FindSubmatch(text); err == nil && m != nil {
			return string(m[1])
		}
		return ""
	}
}

// machine returns the machine whose figures these are.
func machine() string {
	model := found(`model name\s*: (.*)`)(os.ReadFile("/proc/cpuinfo"))
	return fmt.Sprintf("%s/%s, %d × %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

// modules are those whose versions matter, with the names that users know.
var modules = map[string]string{
	"github.com/redis/rueidis":         "rueidis and rueidislock",
	"github.com/go-redsync/redsync/v4": "redsync",
	"github.com/bsm/redislock":         "redislock",
	"github.com/redis/go-redis/v9":     "go-redis",
	"go.etcd.io/etcd/client/v3":        "etcd's client",
	"github.com/go-zookeeper/zk":       "ZooKeeper's client",
}

// versions returns those of all servers and clients that are here.
func versions() string {
	all := []string{runtime.Version()}
	add := func(name, version string) {
		if name != "" && version != "" {
			all = append(all, name+" "+version)
		}
	}
	add("Redis", found(`v=(\S+)`)(exec.Command("redis-server", "--version").Output()))
	add("etcd", found(`etcd Version: (\S+)`)(exec.Command("etcd", "--version").Output()))
	add("Java", found(`\S+ (\S+)`)(exec.Command("java", "--version").Output()))
	jars, err := filepath.Glob(strings.TrimSuffix(zookeeperJar, ".jar") + "-[0-9]*.jar")
	add("ZooKeeper", found(`zookeeper-([0-9.]+)\.jar`)([]byte(strings.Join(jars, "\n")), err))
	add("Redisson", found(`<artifactId>redisson</artifactId>\s*<version>(.*)</version>`)(os.ReadFile(filepath.Join(javaDir, "pom.xml"))))
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			add(modules[m.Path], m.Version)
		}
	}
	return strings.Join(all, ", ")
}
