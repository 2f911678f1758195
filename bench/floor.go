package main

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/scripts"
)

// script is a bare script.
type script struct {
	keys      int64
	done      func(reply int64) bool // whether it has done its work
	text, sha string
}

func newScript(keys int64, done func(int64) bool, text string) script {
	return script{keys, done, text, fmt.Sprintf("%x", sha1.Sum([]byte(text)))}
}

func isOne(reply int64) bool { return reply == 1 }
func isAny(int64) bool       { return true }

// The least that the layout of rlock asks for: no checks, and no word of what went wrong.
var (
	floorAcquire = newScript(2, func(left int64) bool { return left == 0 }, `if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
return redis.call('PTTL', KEYS[1])`)
	floorRelease = newScript(1, func(heard int64) bool { return heard >= 0 }, `if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PUBLISH', ARGV[2], '0')
end
return -1`)
	floorRenew = newScript(1, isOne, `if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`)
)

// floor runs bare scripts as rlock runs its own: on the client's first connection, under a
// deadline that calls share.
type floor struct {
	client rueidis.Client
	lease  string // in ms
	bounds calls.Bounds
}

// newFloor connects to the first node.
func newFloor(t task, more ...script) *floor {
	client := must(rueidis.NewClient(options(t.Addrs[0])))
	for _, s := range append(more, floorAcquire, floorRelease, floorRenew) {
		check(client.Do(always, client.B().ScriptLoad().Script(s.text).Build()).Error())
	}
	return &floor{
		client: client, lease: strconv.FormatInt(t.lease().Milliseconds(), 10),
		bounds: calls.Bounds{Base: always, Timeout: 5 * time.Second}, // what rlock gives a call at a lease of 30 s
	}
}

// setFloor is the least that a lock costs if it is a string and its release wakes nobody: SET
// NX PX, and a script that compares and deletes.
type setFloor struct{ *floor }

var setRelease = newScript(1, isOne, `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

func (f setFloor) cycle(key string) func(func()) error {
	k := newFloorKey(key)
	return func(inside func()) error {
		set := f.client.B().Arbitrary("SET").Keys(k.key).Args(k.owner, "NX", "PX", f.lease).Build()
		if err := f.client.Do(f.bounds.Context(), set).Error(); err != nil {
			return fmt.Errorf("floor of SET: %s: %w", k.key, err)
		}
		inside()
		return f.call(setRelease, k.key, k.owner)
	}
}

// floorKey is a key with the names that belong to it.
type floorKey struct{ key, owner, tombstone, channel string }

func newFloorKey(key string) floorKey {
	owner := "00000000-0000-4000-8000-000000000000:0" + key
	return floorKey{key, owner, "holdfast_gone:{" + key + "}:" + owner, scripts.Channel(key)}
}

func (floorKey) Err() error { return nil }

func (f *floor) cycle(key string) func(func()) error {
	k := newFloorKey(key)
	return func(inside func()) error {
		if err := f.acquire(k); err != nil {
			return err
		}
		inside()
		return f.call(floorRelease, k.key, k.owner, k.channel)
	}
}

// acquire takes a key that is free.
func (f *floor) acquire(k floorKey) error {
	return f.call(floorAcquire, k.key, k.tombstone, k.owner, f.lease)
}

// call runs a script, which must do its work.
func (f *floor) call(s script, args ...string) error {
	cmd := f.client.B().Evalsha().Sha1(s.sha).Numkeys(s.keys).Arg(args...).Build()
	reply, err := f.client.Do(f.bounds.Context(), cmd).AsInt64()
	if err == nil && !s.done(reply) {
		err = fmt.Errorf("a bare script replied %d for %s: the lock was lost or not free, or nobody heard of it", reply, args[0])
	}
	return err
}

func (f *floor) close() { f.client.Close() }

// single renews each lease by a call of its own to each node.
const single = "a call per lease"

// singles is a floor of the first node that also holds keys on all nodes.
type singles struct {
	*floor
	nodes []*floor
}

func openSingle(t task) locker {
	s := &singles{}
	for _, addr := range t.Addrs {
		t.Addrs = []string{addr}
		s.nodes = append(s.nodes, newFloor(t))
	}
	s.floor = s.nodes[0]
	return s
}

func (s *singles) keep(key string) (kept, error) {
	k := newFloorKey(key)
	for _, f := range s.nodes {
		if err := f.acquire(k); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// renew renews every lease on every node.
func (s *singles) renew(all []kept) error {
	return inParallel(inFlight*len(s.nodes), len(all)*len(s.nodes), func(i int) error {
		k, f := all[i/len(s.nodes)].(floorKey), s.nodes[i%len(s.nodes)]
		return f.call(floorRenew, k.key, k.owner, f.lease)
	})
}

func (s *singles) close() {
	for _, f := range s.nodes {
		f.close()
	}
}
