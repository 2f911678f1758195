package scripts

import "strings"

// named returns the name of something that belongs to key: prefix:{key}, so
// that both share a slot in Cluster, or prefix:key if the key has braces of its
// own. This is Redisson's rule, to the letter.
func named(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// Channel returns the channel on which releases of key are announced. The
// message is the digit 0.
func Channel(key string) string { return named("redisson_lock__channel", key) }

// counter returns the key of the fence counter of key.
func counter(key string) string { return named("redisson_lock_token", key) }

// tombstone returns the key whose presence says that owner has been given up
// and must take key no more.
func tombstone(key, owner string) string {
	if strings.Contains(key, "{") {
		return "holdfast_gone:" + key + ":" + owner
	}
	return "holdfast_gone:{" + key + "}:" + owner
}

// queue and scores return the list and the sorted set of those who wait for key
// in order, beats the hash that tells which of their clients live.
func queue(key string) string  { return named("redisson_lock_queue", key) }
func scores(key string) string { return named("redisson_lock_timeout", key) }
func beats(key string) string  { return named("holdfast_beat", key) }

// channels returns the start of the names of the channels of those who wait for
// key in order: followed by a client, its inbox; by an owner, the owner's own.
func channels(key string) string { return Channel(key) + ":" }

// marker is the key in which a node of a quorum keeps since when it has been up
// without a gap. It belongs to the node, not to a lock.
const marker = "holdfast_node"
