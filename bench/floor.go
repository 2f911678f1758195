package main

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/scripts"
)

// The least that the layout of rlock asks for: no checks, and no word of what went wrong.
const (
	floorAcquire = `if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], ARGV[1], '1')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 0
end
return redis.call('PTTL', KEYS[1])`
	floorRelease = `if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PUBLISH', ARGV[2], '0')
end
return -1`
	floorRenew = `if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`
)

// floor runs bare scripts as rlock runs its own: on the client's first connection, under a
// deadline that calls share.
type floor struct {
	client rueidis.Client
	lease  string // in ms
	bounds calls.Bounds
}

const callTime = 5 * time.Second // what rlock gives a call at a lease of 30 s

func openFloor(t task) locker { return newFloor(t) }

// newFloor connects to the first node.
func newFloor(t task, more ...string) *floor {
	client := must(rueidis.NewClient(options(t.Addrs[0])))
	for _, text := range append(more, floorAcquire, floorRelease, floorRenew) {
		check(client.Do(always, client.B().ScriptLoad().Script(text).Build()).Error())
	}
	lease := strconv.FormatInt(t.lease().Milliseconds(), 10)
	return &floor{client: client, lease: lease, bounds: calls.Bounds{Base: always, Timeout: callTime}}
}

// The scripts as Redis knows them.
var acquireSHA, releaseSHA, renewSHA = sha(floorAcquire), sha(floorRelease), sha(floorRenew)

func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// setFloor is the least that a lock costs if it is a string and its release wakes nobody: SET
// NX PX, and a script that compares and deletes.
type setFloor struct{ *floor }

const setRelease = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`

var setReleaseSHA = sha(setRelease)

func openSetFloor(t task) locker { return setFloor{newFloor(t, setRelease)} }

func (f setFloor) cycle(key string) func(func()) error {
	k := newFloorKey(key)
	return func(inside func()) error {
		set := f.client.B().Arbitrary("SET").Keys(k.key).Args(k.owner, "NX", "PX", f.lease).Build()
		if err := f.client.Do(f.bounds.Context(), set).Error(); err != nil {
			return fmt.Errorf("floor of SET: %s: %w", k.key, err)
		}
		inside()
		deleted, err := f.call(setReleaseSHA, 1, k.key, k.owner)
		if err == nil && deleted != 1 {
			err = fmt.Errorf("floor of SET: %s was lost", k.key)
		}
		return err
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
		heard, err := f.call(releaseSHA, 1, k.key, k.owner, k.channel)
		if err == nil && heard < 0 {
			err = fmt.Errorf("floor: %s was lost", k.key)
		}
		return err
	}
}

// acquire takes a key that is free.
func (f *floor) acquire(k floorKey) error {
	left, err := f.call(acquireSHA, 2, k.key, k.tombstone, k.owner, f.lease)
	if err == nil && left != 0 {
		err = fmt.Errorf("floor: %s is not free", k.key)
	}
	return err
}

func (f *floor) call(script string, keys int64, args ...string) (int64, error) {
	cmd := f.client.B().Evalsha().Sha1(script).Numkeys(keys).Arg(args...).Build()
	return f.client.Do(f.bounds.Context(), cmd).AsInt64()
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
		renewed, err := f.call(renewSHA, 1, k.key, k.owner, f.lease)
		if err == nil && renewed != 1 {
			err = fmt.Errorf("floor: %s was lost", k.key)
		}
		return err
	})
}

func (s *singles) close() {
	for _, f := range s.nodes {
		f.close()
	}
}
