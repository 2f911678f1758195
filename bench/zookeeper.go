package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// zookeeperJar is where Debian has the server.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

func needZookeeper() error {
	if _, err := os.Stat(zookeeperJar); err != nil {
		return fmt.Errorf("%s is not there: apt-get install zookeeper", zookeeperJar)
	}
	return needProgram("java", "zookeeper")
}

// zookeeperServer is one server, which forces nothing to disk.
func zookeeperServer(s *starter, addr string) *exec.Cmd {
	dir := s.TempDir()
	host, port, _ := strings.Cut(addr, ":")
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\nmaxClientCnxns=0\nadmin.enableServer=false\n",
		filepath.Join(dir, "data"), port, host)
	check(os.WriteFile(config, []byte(text), 0o600))
	return exec.Command("java", "-Xms512m", "-Xmx512m", "-Dzookeeper.forceSync=no", "-Dzookeeper.jmx.log4j.disable=true",
		"-cp", zookeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
}

func zookeeperReady(addr string) (err error) {
	defer caught(&err)
	l := openZookeeper(task{Addrs: []string{addr}})
	defer l.close()
	_, _, err = l.(*zookeeper).conn.Children("/")
	return err
}

// zookeeper is one session, which goroutines share.
type zookeeper struct{ conn *zk.Conn }

func openZookeeper(t task) locker {
	conn, events, err := zk.Connect(t.Addrs, t.lease(), zk.WithLogger(log.New(io.Discard, "", 0)))
	check(err)
	limit := time.After(5 * time.Second)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return &zookeeper{conn}
			}
		case <-limit:
			conn.Close()
			check(errors.New("no session after 5s"))
		}
	}
}

func (l *zookeeper) cycle(key string) func(func()) error {
	lock := zk.NewLock(l.conn, "/bench/"+key, zk.WorldACL(zk.PermAll))
	return func(inside func()) error {
		if err := lock.Lock(); err != nil {
			return err
		}
		inside()
		return lock.Unlock()
	}
}

func (l *zookeeper) close() { l.conn.Close() }
