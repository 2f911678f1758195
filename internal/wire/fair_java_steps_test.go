package wire

import (
	"time"

	"github.com/stretchr/testify/require"
)

// Java's steps at a fair lock, written anew from what is known of them (not its
// code): a Java program beside ours does this to the keys that we share. Its clock
// is the server's here.

// KEYS: lock, queue, scores. ARGV: owner, wait in ms, start of the channels' names.
const javaGiven = `
local lock, queue, scores = KEYS[1], KEYS[2], KEYS[3]
local owner, wait, channels = ARGV[1], ARGV[2], ARGV[3]
`

const javaStaleHeads = javaGiven + `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
while true do
  local head = redis.call('LINDEX', queue, 0)
  local score = head and redis.call('ZSCORE', scores, head)
  if not score or tonumber(score) > now then
    break
  end
  redis.call('ZREM', scores, head)
  redis.call('LPOP', queue)
end
`

// Answers nil if the owner holds the lock now.
const javaTry = javaStaleHeads + `
local head = redis.call('LINDEX', queue, 0)
if redis.call('EXISTS', lock) == 0 and (not head or head == owner) then
  redis.call('LPOP', queue)
  redis.call('ZREM', scores, owner)
  for _, left in ipairs(redis.call('ZRANGE', scores, 0, -1)) do
    redis.call('ZINCRBY', scores, -tonumber(wait), left)
  end
  redis.call('HSET', lock, owner, 1)
  redis.call('PEXPIRE', lock, 30000)
  return nil
end
if not redis.call('ZSCORE', scores, owner) then
  local last = redis.call('LINDEX', queue, -1)
  local score = last and redis.call('ZSCORE', scores, last)
  local sleep = score and tonumber(score) - now or redis.call('PTTL', lock)
  redis.call('ZADD', scores, sleep + wait + now, owner)
  redis.call('RPUSH', queue, owner)
end
return 1
`

const javaUnlock = javaStaleHeads + `
redis.call('HDEL', lock, owner)
local head = redis.call('LINDEX', queue, 0)
if redis.call('EXISTS', lock) == 0 and head then
  redis.call('PUBLISH', channels .. head, '0')
end
return 1
`

const javaGiveUp = javaGiven + `
local behind = false
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  if behind then
    redis.call('ZINCRBY', scores, -tonumber(wait), waiter)
  end
  behind = behind or waiter == owner
end
redis.call('ZREM', scores, owner)
redis.call('LREM', queue, 0, owner)
return 1
`

// javaWait is for how long a Java waiter means to wait if it does not say.
const javaWait = 300 * time.Second

// java takes a step, and reports whether the owner holds the lock by it.
func (r *harness) java(step, owner string, wait time.Duration) (acquired bool) {
	r.t.Helper()
	m := r.s.Do(r.t, "EVAL", step, "3", "k", queue("k"), scores("k"), owner, decimal(wait.Milliseconds()), channels("k"))
	return m.IsNil()
}

// javaTries has a Java waiter try, and enter the queue if it does not wait in it
// yet.
func (r *harness) javaTries(owner string) (acquired bool) {
	r.t.Helper()
	return r.java(javaTry, owner, javaWait)
}

// javaEnters has Java waiters enter, but not listen.
func (r *harness) javaEnters(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		require.False(r.t, r.javaTries(o))
	}
}

// javaWaits has Java waiters enter and then listen.
func (r *harness) javaWaits(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		r.javaEnters(o)
		r.subscribe(r.ownerChannel(o))
	}
}

// javaStands puts a Java waiter behind all others that means to wait very long, and does not listen.
func (r *harness) javaStands(owner string) {
	r.t.Helper()
	r.s.Do(r.t, "RPUSH", queue("k"), owner)
	r.s.Do(r.t, "ZADD", scores("k"), "9e15", owner)
}

func (r *harness) javaUnlocks(owner string) { r.t.Helper(); r.java(javaUnlock, owner, 0) }
func (r *harness) javaGivesUp(owner string) { r.t.Helper(); r.java(javaGiveUp, owner, javaWait) }

func (r *harness) ownerChannel(owner string) string {
	return Inbox("k", owner)
}

// woken is the message by which Java wakes an owner, and is woken.
func (r *harness) woken(owner string) string { return r.ownerChannel(owner) + " 0" }
