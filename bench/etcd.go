package main

import (
	"context"
	"math"
	"os/exec"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

var etcdLibrary = &library{
	open: openEtcd, server: etcdServer, ready: etcdReady,
	absent: func() error { return needProgram("etcd", "etcd-server") },
}

// etcdServer is one node that is a cluster by itself.
func etcdServer(s *starter, addr string) *exec.Cmd {
	client, peer := "http://"+addr, "http://127.0.0.1:"+freePort(s)
	return exec.Command("etcd", "--name", "bench", "--data-dir", s.TempDir(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "bench="+peer, "--logger", "zap", "--log-level", "error")
}

func etcdReady(addr string) error {
	client, err := etcdClient(addr)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // it was only for this question
	ctx, cancel := context.WithTimeout(always, time.Second)
	defer cancel()
	_, err = client.Get(ctx, "ready")
	return err
}

func etcdClient(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
}

// etcder has a session for each lock or term that is under way: etcd's mutex and its election do
// not exclude others of their session.
type etcder struct {
	client *clientv3.Client
	lease  time.Duration

	mu       sync.Mutex
	sessions []*concurrency.Session // all; guarded by mu
	idle     []*concurrency.Session // guarded by mu
}

func openEtcd(t task) (locker, error) {
	client, err := etcdClient(t.Addrs[0])
	return &etcder{client: client, lease: t.lease()}, err
}

// session returns an idle session, or a new one.
func (l *etcder) session() (*concurrency.Session, error) {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		session := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return session, nil
	}
	l.mu.Unlock()
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(math.Ceil(l.lease.Seconds()))))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = append(l.sessions, session)
	return session, nil
}

func (l *etcder) giveBack(session *concurrency.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, session)
}

func (l *etcder) cycle(key string) func(func()) error {
	return func(inside func()) error {
		session, err := l.session()
		if err != nil {
			return err
		}
		m := concurrency.NewMutex(session, "/bench/"+key)
		if err := m.Lock(always); err != nil {
			return err
		}
		inside()
		defer l.giveBack(session)
		return m.Unlock(always)
	}
}

func (l *etcder) campaign(group string) func(func()) error {
	return func(inside func()) error {
		session, err := l.session()
		if err != nil {
			return err
		}
		e := concurrency.NewElection(session, "/bench/"+group)
		if err := e.Campaign(always, "leader"); err != nil {
			return err
		}
		inside()
		defer l.giveBack(session)
		return e.Resign(always)
	}
}

func (l *etcder) try(key string) (bool, error) {
	session, err := l.session()
	if err != nil {
		return false, err
	}
	defer l.giveBack(session)
	return unlessRefused(concurrency.NewMutex(session, "/bench/"+key).TryLock(always), concurrency.ErrLocked)
}

// close ends the sessions, some at a time, and with them what they hold.
func (l *etcder) close() {
	l.mu.Lock()
	sessions := l.sessions
	l.mu.Unlock()
	_ = inParallel(inFlight, len(sessions), func(i int) error {
		_ = sessions[i].Close() // what is not released now ends with its lease
		return nil
	})
	_ = l.client.Close() // it ends in any case
}
