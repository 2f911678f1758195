package scripts

import "slices"

// Commands returns the commands that a Redis user needs for the scripts, eval
// and evalsha included, in lower case.
func Commands() []string {
	return []string{
		"eval", "evalsha",
		"del", "exists", "get", "hdel", "hexists", "hget", "hrandfield", "hset",
		"pexpire", "pttl", "publish", "set", "time",
	}
}

// FairCommands returns the commands that a Redis user needs for fair queues, renewals and nested entries
// among them, in lower case.
func FairCommands() []string {
	return append(Commands(),
		"lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "pubsub|numsub", "rpush",
		"zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore")
}

// SemaphoreCommands returns the commands that a Redis user needs for the scripts of permits, in lower
// case.
func SemaphoreCommands() []string {
	return []string{
		"eval", "evalsha",
		"del", "exists", "hdel", "hexists", "hget", "hmget", "hrandfield", "hset", "pexpire", "publish", "set", "time",
		"zadd", "zcount", "zrange", "zrangebyscore", "zrem", "zscore",
	}
}

// RWLockCommands returns the commands that a Redis user needs for the scripts of
// read/write locks, in lower case.
func RWLockCommands() []string {
	return append(slices.DeleteFunc(Commands(), func(c string) bool { return c == "hrandfield" }), "hgetall")
}

// ClusterCommands returns the commands that a Redis user of a Redis Cluster needs in addition
// to the lock kind's, in lower case: for the scripts, for the subscriptions, to learn where
// slots are, and to follow keys whose slot moves.
func ClusterCommands() []string {
	return []string{
		"asking", "cluster|shards", "cluster|slots",
		"pubsub|shardnumsub", "spublish", "ssubscribe", "sunsubscribe",
	}
}

// QuorumCommands returns the commands that a Redis user needs for the scripts of
// a quorum's nodes, and for what they share with one Redis, in lower case.
func QuorumCommands() []string { return append(Commands(), "info", "script|load") }
