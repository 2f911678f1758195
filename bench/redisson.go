package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// redissonLibrary is one kind of Redisson's locks. The Java program opens it.
func redissonLibrary(kind string) *library {
	return &library{java: kind, absent: needRedisson, inner: []string{
		"exists", "hincrby", "hexists", "pexpire", "pttl", "publish", "spublish", "del", "get", "set",
		"hset", "lindex", "zscore", "lpop", "rpush", "zrem", "lrem", "zadd", "zrange", "zincrby", "time",
		"hdel", "hget", "hkeys", "hlen", "decrby", "incrby", "zrangebyscore",
	}}
}

// javaDir is where the Java program is, relative to this one.
const javaDir = "java"

func needRedisson() error {
	for _, program := range []string{"java", "javac", "mvn"} {
		if err := needProgram(program, "maven openjdk-17-jdk-headless"); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(javaDir, "pom.xml")); err != nil {
		return errors.New("java/pom.xml is not here: bench must be run in its own folder")
	}
	return nil
}

// needProgram returns an error with the Debian package to install if a program is missing.
func needProgram(name, from string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("%s is not on the PATH: apt-get install %s", name, from)
	}
	return nil
}

// javaWorkers are the Java processes, by their place among those that work together. They are
// kept, as they are warm for the next task. They belong to one goroutine.
var javaWorkers = make(map[int]*worker)

// javaWarm is how long a Java process does a kind of work before it is first measured at it.
var javaWarm = 3 * time.Second

// javaWorker returns the process of a place, a new one if it has ended.
func javaWorker(place int) (_ *worker, err error) {
	defer caught(&err)
	if w, ok := javaWorkers[place]; ok {
		if !w.ended() {
			return w, nil
		}
		w.stop()
	}
	check(buildJava())
	w := must(startJava())
	w.warm = make(map[string]bool)
	javaWorkers[place] = w
	return w, nil
}

// startJava starts the Java program, which has been built.
func startJava() (*worker, error) {
	classes, libraries := filepath.Join(javaDir, "target", "classes"), filepath.Join(javaDir, "target", "lib", "*")
	return newWorker("java", "-Xms256m", "-Xmx1g", "-cp", classes+string(os.PathListSeparator)+libraries, "bench.Agent")
}

// stopJava ends all Java processes.
func stopJava() {
	for _, w := range javaWorkers {
		w.stop()
	}
	clear(javaWorkers)
}

var buildJava = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(always, 5*time.Minute) // Maven may have to load everything
	defer cancel()
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", javaDir, "process-classes").CombinedOutput()
	if err != nil {
		return fmt.Errorf("mvn -f %s process-classes: %w:\n%s", javaDir, err, tail(string(out)))
	}
	return nil
})
