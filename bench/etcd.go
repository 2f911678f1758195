package main

import (
	"context"
	"math"
	"os/exec"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func needEtcd() error { return needProgram("etcd", "etcd-server") }

// etcdServer is one node that is a cluster by itself.
func etcdServer(s *starter, addr string) *exec.Cmd {
	client, peer := "http://"+addr, "http://127.0.0.1:"+freePort(s)
	return exec.Command("etcd", "--name", "bench", "--data-dir", s.TempDir(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "bench="+peer, "--logger", "zap", "--log-level", "error")
}

func etcdReady(addr string) (err error) {
	defer caught(&err)
	client := etcdClient(addr)
	defer client.Close() //nolint:errcheck // it was only for this question
	ctx, cancel := context.WithTimeout(always, time.Second)
	defer cancel()
	_, err = client.Get(ctx, "ready")
	return err
}

func etcdClient(addr string) *clientv3.Client {
	return must(clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()}))
}

// etcder has a session for each lock or term that is under way: etcd's mutex and its election do
// not exclude others of their session.
type etcder struct {
	client *clientv3.Client
	lease  time.Duration
	idle   chan *concurrency.Session // has room for more than are ever under way
}

func openEtcd(t task) locker {
	return &etcder{etcdClient(t.Addrs[0]), t.lease(), make(chan *concurrency.Session, 2*saleCrowd)}
}

// session returns an idle session, or a new one.
func (l *etcder) session() (*concurrency.Session, error) {
	select {
	case session := <-l.idle:
		return session, nil
	default:
		return concurrency.NewSession(l.client, concurrency.WithTTL(int(math.Ceil(l.lease.Seconds()))))
	}
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
		defer func() { l.idle <- session }()
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
		defer func() { l.idle <- session }()
		return e.Resign(always)
	}
}

func (l *etcder) try(key string) (bool, error) {
	session, err := l.session()
	if err != nil {
		return false, err
	}
	defer func() { l.idle <- session }()
	return unlessRefused(concurrency.NewMutex(session, "/bench/"+key).TryLock(always), concurrency.ErrLocked)
}

// close ends the idle sessions, some at a time. The others end with their leases.
func (l *etcder) close() {
	_ = inParallel(inFlight, len(l.idle), func(int) error {
		_ = (<-l.idle).Close() // it ends in any case, if only with its lease
		return nil
	})
	_ = l.client.Close() // it ends in any case
}
