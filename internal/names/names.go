// Package names has what the names in Redis that belong to a lock begin and end with, and so which
// keys no lock may have. It also has the end of a job's key, for the command and the adapters.
package names

import "strings"

// The names of what belongs to a lock, other than its key, begin with these.
const (
	CounterPrefix    = "redisson_lock_token"   // the fence counter
	QueuePrefix      = "redisson_lock_queue"   // the list of owners that wait in order
	ScoresPrefix     = "redisson_lock_timeout" // their sorted set
	HeartbeatsPrefix = "holdfast_heartbeat"    // the hash that says which of their clients are alive
	TombstonePrefix  = "holdfast_gone"         // the tombstones
	PermitsPrefix    = "holdfast_permits"      // the permit record
	WishesPrefix     = "holdfast_wishes"       // the hash of clients that wait for a read/write lock
	LatchPrefix      = "redisson_unlock_latch" // Java's own notes of releases
)

// Helpers are all of these. No key may begin with one, see Collision: it would be part of another lock.
var Helpers = []string{CounterPrefix, QueuePrefix, ScoresPrefix, HeartbeatsPrefix, TombstonePrefix, PermitsPrefix, WishesPrefix, LatchPrefix}

// ReadHolds, followed by a number, ends the names of the timeout keys of a read/write lock.
// Java sets them whatever was there before.
const ReadHolds = ":rwlock_timeout"

// Marker is the key in which a node of a quorum keeps since when it has been up.
const Marker = "holdfast_node"

// Due ends the key of a job that runs once when it is due: it is held for a fixed time from the start.
const Due = ":due"

// Of returns the name of something that belongs to key: prefix:{key}, so
// that both share a slot in Cluster, or prefix:key if the key has braces of its
// own. This is Redisson's rule, to the letter.
func Of(prefix, key string) string {
	before, after := Braces(key)
	return prefix + before + key + after
}

// Braces returns what stands around key in such a name.
func Braces(key string) (before, after string) {
	if strings.Contains(key, "{") {
		return ":", ""
	}
	return ":{", "}"
}

// Collision says which names of another lock those of key would collide with; "" if none. They do if key is
// redisson_lock_queue:{k} or holdfast_node, and also if it is {k}, as Redisson puts braces around k in names.
func Collision(key string) string {
	switch key[0] {
	case 'h', 'r':
		for _, prefix := range Helpers {
			if len(key) > len(prefix) && key[len(prefix)] == ':' && key[:len(prefix)] == prefix {
				return "key begins with " + prefix + ":, which names a part of another lock"
			}
		}
		if key == Marker {
			return "key is " + Marker + ", the mark of a node of a quorum"
		}
	case '{':
		if last := len(key) - 1; last > 1 && key[last] == '}' && strings.LastIndexByte(key, '{') == 0 {
			return "key is in braces: the key without them has the same queue, fence counter and channels"
		}
	}
	if i := strings.LastIndexByte(key, ':'); i > 0 && strings.HasSuffix(key[:i], ReadHolds) {
		return "key ends with " + ReadHolds + " and a number, which names a part of a read/write lock"
	}
	return ""
}
