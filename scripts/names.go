package scripts

import "strings"

// named returns the name of something that belongs to key: prefix:{key}, so
// that both share a slot in Cluster, or prefix:key if the key has braces of its
// own. This is Redisson's rule, to the letter.
func named(prefix, key string) string {
	before, after := braces(key)
	return prefix + before + key + after
}

// braces returns what stands around key in such a name.
func braces(key string) (before, after string) {
	if strings.Contains(key, "{") {
		return ":", ""
	}
	return ":{", "}"
}

// appendNamed appends a name for each prefix. All are cut from one string: a fair
// call has so many that an allocation for each would be seen in its speed.
func appendNamed(names []string, key string, prefixes ...string) []string {
	before, after := braces(key)
	around := len(before) + len(key) + len(after)
	size := 0
	for _, prefix := range prefixes {
		size += len(prefix) + around
	}
	var all strings.Builder
	all.Grow(size)
	for _, prefix := range prefixes {
		all.WriteString(prefix)
		all.WriteString(before)
		all.WriteString(key)
		all.WriteString(after)
	}
	rest := all.String()
	for _, prefix := range prefixes {
		length := len(prefix) + around
		names, rest = append(names, rest[:length]), rest[length:]
	}
	return names
}

// Channel returns the channel that is notified when key is released. The message is the
// digit 0.
func Channel(key string) string { return named("redisson_lock__channel", key) }

// The names of what belongs to a lock besides its key begin so.
const (
	counterPrefix    = "redisson_lock_token"   // the fence counter
	queuePrefix      = "redisson_lock_queue"   // the list of owners that wait in order
	scoresPrefix     = "redisson_lock_timeout" // their sorted set
	heartbeatsPrefix = "holdfast_heartbeat"    // the hash that says which of their clients are alive
	tombstonePrefix  = "holdfast_gone"         // the tombstones
	latchPrefix      = "redisson_unlock_latch" // Java's own notes of releases
)

// helpers are all of these. No key may begin so, see CheckKey: it would be part of
// another lock.
var helpers = [...]struct {
	prefix string
	each   bool // a lock has several, each with an owner or another id behind
}{{counterPrefix, false}, {queuePrefix, false}, {scoresPrefix, false}, {heartbeatsPrefix, false}, {tombstonePrefix, true}, {latchPrefix, true}}

// readHolds, with a number behind it, ends the names that Java gives to the read holds of
// a lock. Java sets them whatever was there before.
const readHolds = ":rwlock_timeout"

// meets says which names of another lock those of key would collide with; "" if none.
func meets(key string) string {
	switch key[0] {
	case 'h', 'r':
		for i := range helpers {
			prefix := helpers[i].prefix
			if len(key) > len(prefix) && key[len(prefix)] == ':' && key[:len(prefix)] == prefix {
				return "key begins with " + prefix + ":, which names a part of another lock"
			}
		}
		if key == marker {
			return "key is " + marker + ", the mark of a node of a quorum"
		}
	case '{':
		if last := len(key) - 1; last > 1 && key[last] == '}' && strings.LastIndexByte(key, '{') == 0 {
			return "key is in braces: the key without them has the same queue, fence counter and channels"
		}
	}
	if i := strings.LastIndexByte(key, ':'); i > 0 && strings.HasSuffix(key[:i], readHolds) {
		return "key ends with " + readHolds + " and a number, which names a part of a read/write lock"
	}
	return ""
}

// counter returns the key of the fence counter of key.
func counter(key string) string { return named(counterPrefix, key) }

// tombstone returns the key whose presence says that owner has been given up
// and must take key no more.
func tombstone(key, owner string) string {
	before, after := braces(key)
	return tombstonePrefix + before + key + after + ":" + owner
}

// queue returns the list of owners that wait for key in order.
func queue(key string) string { return named(queuePrefix, key) }

// marker is the key in which a node of a quorum keeps since when it has been up
// without a gap. It belongs to the node, not to a lock.
const marker = "holdfast_node"
