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
func found(text []byte, err error, pattern string) string {
	if m := regexp.MustCompile(pattern).FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

// machine returns the machine whose figures these are.
func machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	return fmt.Sprintf("%s/%s, %d × %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), found(text, err, `model name\s*: (.*)`))
}

// loadAverage returns how busy the machine is.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	return found(text, err, `(.*)`)
}

// commit returns the state of the source, as git describes it.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	return found(text, err, `(.*)`)
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
	add := func(name string, text []byte, err error, pattern string) {
		if version := found(text, err, pattern); version != "" {
			all = append(all, name+" "+version)
		}
	}
	for _, program := range [][3]string{
		{"Redis", "redis-server", `v=(\S+)`}, {"etcd", "etcd", `etcd Version: (\S+)`}, {"Java", "java", `\S+ (\S+)`},
	} {
		text, err := exec.Command(program[1], "--version").Output()
		add(program[0], text, err, program[2])
	}
	jars, err := filepath.Glob(strings.TrimSuffix(zookeeperJar, ".jar") + "-[0-9]*.jar")
	add("ZooKeeper", []byte(strings.Join(jars, "\n")), err, `zookeeper-([0-9.]+)\.jar`)
	text, err := os.ReadFile(filepath.Join(javaDir, "pom.xml"))
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
