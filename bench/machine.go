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

// found is the first group of a pattern in what a program prints or a file has; "" if there
// is none.
func found(text []byte, err error, pattern string) string {
	if m := regexp.MustCompile(pattern).FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

// machine is what the figures are of.
func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	return fmt.Sprintf("%s/%s, %d × %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), found(text, err, `model name\s*: (.*)`))
}

// loadAverage is how busy the machine is.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	return found(text, err, `(.*)`)
}

// commit is the state of the source, as git describes it.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	return found(text, err, `(.*)`)
}

// modules are those whose versions count, and what users call them.
var modules = map[string]string{
	"github.com/redis/rueidis":         "rueidis and rueidislock",
	"github.com/go-redsync/redsync/v4": "redsync",
	"github.com/bsm/redislock":         "redislock",
	"github.com/redis/go-redis/v9":     "go-redis",
	"go.etcd.io/etcd/client/v3":        "etcd's client",
	"github.com/go-zookeeper/zk":       "ZooKeeper's client",
}

// versions are those of all servers and clients that are here.
func versions() string {
	all := []string{runtime.Version()}
	add := func(name string, text []byte, err error, pattern string) {
		if version := found(text, err, pattern); version != "" {
			all = append(all, name+" "+version)
		}
	}
	text, err := exec.Command("redis-server", "--version").Output()
	add("Redis", text, err, `v=(\S+)`)
	text, err = exec.Command("etcd", "--version").Output()
	add("etcd", text, err, `etcd Version: (\S+)`)
	jars, err := filepath.Glob(strings.TrimSuffix(zookeeperJar, ".jar") + "-[0-9]*.jar")
	add("ZooKeeper", []byte(strings.Join(jars, "\n")), err, `zookeeper-([0-9.]+)\.jar`)
	text, err = exec.Command("java", "--version").Output()
	add("Java", text, err, `\S+ (\S+)`)
	text, err = os.ReadFile(filepath.Join(javaDir, "pom.xml"))
	add("Redisson", text, err, `<artifactId>redisson</artifactId>\s*<version>(.*)</version>`)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name, ok := modules[m.Path]; ok {
				all = append(all, name+" "+m.Version)
			}
		}
	}
	return strings.Join(all, ", ")
}
