package main

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"
)

// ringPass is all that a grant is on the ring: a message to the next.
var ringPass = newScript(1, isOne, `return redis.call('PUBLISH', KEYS[1], ARGV[1])`)

// ringIdle is as much work, but nobody hears of it.
var ringIdle = newScript(1, isAny, ringPass.text)

// ringQueuePass and ringQueueEnter are the least that a grant also does in Redisson's
// layout of a fair queue: the lock goes from one owner to the next, which leaves the queue; and
// the first one enters again.
var (
	ringQueuePass = newScript(4, isOne, `
redis.call('HDEL', KEYS[2], ARGV[2])
redis.call('LPOP', KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[3], '1')
redis.call('PEXPIRE', KEYS[2], '30000')
`+ringPass.text)
	ringQueueEnter = newScript(2, isAny, `
redis.call('TIME')
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('ZADD', KEYS[2], '1', ARGV[1])`)
)

// ring is the floor of a grant in a strict order: a token goes round the participants,
// each in another process than the one before, by one script call and one message for each
// step. There is no lock in it. A participant is one goroutine. Its number is goroutine ×
// processes + process.
//
// With a queue, it is the floor of a lock in Redisson's layout. The calls do to the queue what
// they must, but decide nothing by it. A participant makes another call before it waits again,
// because whatever wants a lock once more has to say so.
type ring struct {
	*floor
	heard  rueidis.DedicatedClient
	at     task            // the place of this process among others; immutable
	queue  bool            // immutable
	turns  []chan struct{} // by goroutine: the token, one slot
	joined int             // goroutines so far; owned by the caller of cycle

	once  sync.Once
	ended chan struct{} // closed by over
}

// openRing subscribes before it returns, so that no message is lost once all processes have
// returned.
func openRing(queue bool) func(task) locker {
	return func(at task) locker {
		f := newFloor(at, ringPass, ringQueuePass, ringQueueEnter)
		r := &ring{floor: f, at: at, queue: queue, ended: make(chan struct{})}
		for range at.Goroutines {
			r.turns = append(r.turns, make(chan struct{}, 1))
		}
		if at.Process == 0 {
			r.turns[0] <- struct{}{}
		}
		r.heard, _ = r.client.Dedicate()
		r.heard.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: r.hear})
		check(r.heard.Do(always, r.heard.B().Subscribe().Channel(ringChannel(at.Process)).Build()).Error())
		return r
	}
}

const (
	ringNobody = "ring:nobody" // a channel to which nobody listens
	ringLock   = "ring:{hot}:lock"
	ringQueue  = "ring:{hot}:queue"
	ringScores = "ring:{hot}:scores"
)

func ringChannel(process int) string { return fmt.Sprintf("ring:{hot}:%d", process) }

// ringOwner is as long as an owner is.
func ringOwner(number int) string {
	return fmt.Sprintf("00000000-0000-4000-8000-000000000000:%d", number)
}

// hear gives the token to the participant that the message names.
func (r *ring) hear(m rueidis.PubSubMessage) {
	next, _ := strconv.Atoi(m.Message)         // only participants publish here
	r.turns[next/r.at.Processes] <- struct{}{} // has room: there is one token
}

// cycle makes a participant of the ring if all want the key; on other keys it only calls
// Redis. When the load is over, the token stops at the first participant that has gone, and the
// cycles of the others end without a section.
func (r *ring) cycle(key string) func(func()) error {
	if key != hotKey {
		return func(inside func()) error {
			inside()
			return r.call(ringIdle, ringNobody, "0")
		}
	}
	turn := r.turns[r.joined]
	me := r.joined*r.at.Processes + r.at.Process
	next := (me + 1) % (r.at.Processes * r.at.Goroutines)
	mine, other, channel, number := ringOwner(me), ringOwner(next), ringChannel(next%r.at.Processes), strconv.Itoa(next)
	r.joined++
	return func(inside func()) error {
		select {
		case <-turn:
		case <-r.ended:
			return nil
		}
		inside()
		if !r.queue {
			return r.call(ringPass, channel, number)
		}
		if err := r.call(ringQueuePass, channel, ringLock, ringQueue, ringScores, number, mine, other); err != nil {
			return err
		}
		return r.call(ringQueueEnter, ringQueue, ringScores, mine)
	}
}

// over ends the waits for the token, which do not end with the load otherwise.
func (r *ring) over() { r.once.Do(func() { close(r.ended) }) }

func (r *ring) close() {
	r.over()
	r.heard.Close()
	r.floor.close()
}
