package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// The rivals' names. How each is set, and why, is in RIVALS.md.
const (
	rueidisName      = "rueidislock"
	redsyncName      = "redsync"
	redislockName    = "redislock"
	etcdName         = "etcd"
	zookeeperName    = "zookeeper"
	redissonName     = "Redisson"
	redissonFairName = "Redisson fair"
	redissonSpinName = "Redisson spin"
)

// rivals are those that promise no order, and those that cannot be had without one.
func rivals() []string {
	return []string{
		rueidisName, redsyncName, redislockName,
		etcdName, zookeeperName,
		redissonName, redissonSpinName,
	}
}

// fifoRivals serve who came first, first.
func fifoRivals() []string { return []string{etcdName, zookeeperName, redissonFairName} }

func isRival(name string) bool {
	return slices.Contains(rivals(), name) || slices.Contains(fifoRivals(), name)
}

// beside is a figure of a subject divided by the best rival's of the same round.
func beside(subject, name string) func(round) float64 {
	return func(r round) float64 {
		best := 0.0
		for rival, got := range r {
			if isRival(rival) {
				best = max(best, got[name])
			}
		}
		if best == 0 {
			return nan
		}
		return of(subject, name)(r) / best
	}
}

// besideLeast is the same where less is better.
func besideLeast(subject, name string) func(round) float64 {
	return func(r round) float64 {
		best := nan
		for rival, got := range r {
			if v, ok := got[name]; ok && isRival(rival) && !(v >= best) {
				best = v
			}
		}
		return of(subject, name)(r) / best
	}
}

// inScripts are the commands that a subject's scripts call, and that none of its
// calls sends by itself, where they are not those of our own locks.
var inScripts = map[string][]string{
	setFloorName:       {"get", "del"},
	rueidisName:        {"set", "get", "del", "pexpireat"},
	redsyncName:        {"get", "del"},
	redsyncGoRedisName: {"get", "del"},
	redislockName:      {"set", "get", "getrange", "del", "pexpire", "pttl"},
	redissonName:       redissonScripts,
	redissonFairName:   redissonScripts,
	redissonSpinName:   redissonScripts,
}

var redissonScripts = []string{
	"exists", "hincrby", "hexists", "pexpire", "pttl", "publish", "del", "get", "set",
	"hset", "lindex", "zscore", "lpop", "rpush", "zrem", "lrem", "zadd", "zrange", "zincrby", "time",
}

// programs is what must be installed for a rival, by its name, and how it gets
// there on Debian.
var programs = map[string]struct{ program, from string }{
	etcdName:         {"etcd", "etcd-server"},
	zookeeperName:    {zookeeperJar, "zookeeper"},
	redissonName:     {"mvn", "maven openjdk-17-jdk-headless"},
	redissonFairName: {"mvn", "maven openjdk-17-jdk-headless"},
	redissonSpinName: {"mvn", "maven openjdk-17-jdk-headless"},
}

// needs returns what tells why a library cannot be measured here, nil if it can
// be wherever this program runs.
func needs(library string) func() error {
	p, ok := programs[library]
	if !ok {
		return nil
	}
	return func() error {
		if _, err := exec.LookPath("java"); err != nil && library != etcdName {
			return fmt.Errorf("java is not on the PATH: apt-get install %s", p.from)
		}
		if library == zookeeperName {
			if _, err := os.Stat(p.program); err != nil {
				return fmt.Errorf("%s is not there: apt-get install %s", p.program, p.from)
			}
			return nil
		}
		if _, err := exec.LookPath(p.program); err != nil {
			return fmt.Errorf("%s is not on the PATH: apt-get install %s", p.program, p.from)
		}
		if _, ok := redissonLocks[library]; ok {
			if _, err := exec.LookPath("javac"); err != nil {
				return fmt.Errorf("javac is not on the PATH: apt-get install %s", p.from)
			}
			if _, err := os.Stat(filepath.Join(javaDir, "pom.xml")); err != nil {
				return errors.New("java/pom.xml is not here: bench must be run in its own folder")
			}
		}
		return nil
	}
}
