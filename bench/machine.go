package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

func versions() string {
	found := []string{runtime.Version()}
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		if fields := strings.Fields(string(out)); len(fields) > 2 {
			found = append(found, "Redis "+strings.TrimPrefix(fields[2], "v="))
		}
	}
	if out, err := exec.Command("etcd", "--version").Output(); err == nil {
		line, _, _ := strings.Cut(string(out), "\n")
		found = append(found, strings.Replace(line, " Version:", "", 1))
	}
	if jars, err := filepath.Glob(strings.TrimSuffix(zookeeperJar, ".jar") + "-[0-9]*.jar"); err == nil && len(jars) > 0 {
		found = append(found, "ZooKeeper "+strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "zookeeper-"), ".jar"))
	}
	if out, err := exec.Command("java", "--version").Output(); err == nil {
		line, _, _ := strings.Cut(string(out), "\n")
		found = append(found, line)
	}
	if pom, err := os.ReadFile(filepath.Join(javaDir, "pom.xml")); err == nil {
		if m := redissonVersion.FindSubmatch(pom); m != nil {
			found = append(found, "Redisson "+string(m[1]))
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if name, ok := named[m.Path]; ok {
				found = append(found, name+" "+m.Version)
			}
		}
	}
	return strings.Join(found, ", ")
}

var redissonVersion = regexp.MustCompile(`<artifactId>redisson</artifactId>\s*<version>(.*)</version>`)

// named are the modules whose versions count, and what users call them.
var named = map[string]string{
	"github.com/redis/rueidis":         "rueidis and rueidislock",
	"github.com/go-redsync/redsync/v4": "redsync",
	"github.com/bsm/redislock":         "redislock",
	"github.com/redis/go-redis/v9":     "go-redis",
	"go.etcd.io/etcd/client/v3":        "etcd's client",
	"github.com/go-zookeeper/zk":       "ZooKeeper's client",
}

// commit is the state of the source, as git describes it.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor"
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
