package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"
)

// ringPass is all that a hand-over is on the ring: a message to the next.
const ringPass = `return redis.call('PUBLISH', KEYS[1], ARGV[1])`

var ringSHA = sha(ringPass)

// place is which of several processes this is, and how many goroutines each has.
type place struct{ Process, Processes, Goroutines int }

// ring is the floor of a hand-over in a strict order: a token goes round the
// participants, each in another process than the one before, by one script call
// and one message for each step. There is no lock in it. A participant is one
// goroutine; its number is goroutine × processes + process.
type ring struct {
	client   rueidis.Client
	heard    rueidis.DedicatedClient
	deadline deadline
	at       place           // immutable
	turns    []chan struct{} // by goroutine: the token, one slot
	joined   int             // goroutines so far; owned by the caller of cycle

	once  sync.Once
	ended chan struct{} // closed by end
	why   error         // immutable once ended is closed
}

// openRing subscribes before it returns, so that a ring whose processes have all
// done so loses no message.
func openRing(addr string, at place) (*ring, error) {
	client, err := rueidis.NewClient(options(addr))
	if err != nil {
		return nil, err
	}
	r := &ring{client: client, at: at, ended: make(chan struct{})}
	for range at.Goroutines {
		r.turns = append(r.turns, make(chan struct{}, 1))
	}
	if at.Process == 0 {
		r.turns[0] <- struct{}{}
	}
	r.heard, _ = client.Dedicate()
	r.heard.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: r.hear})
	err = r.heard.Do(always, r.heard.B().Subscribe().Channel(ringChannel(at.Process)).Build()).Error()
	if err == nil {
		err = client.Do(always, client.B().ScriptLoad().Script(ringPass).Build()).Error()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func ringChannel(process int) string { return fmt.Sprintf("ring:{hot}:%d", process) }

// hear gives the token to the participant that the message names.
func (r *ring) hear(m rueidis.PubSubMessage) {
	next, err := strconv.Atoi(m.Message)
	if err != nil || next%r.at.Processes != r.at.Process || next/r.at.Processes >= len(r.turns) {
		r.end(fmt.Errorf("ring: message %q to process %d", m.Message, r.at.Process))
		return
	}
	r.turns[next/r.at.Processes] <- struct{}{} // free: there is one token
}

// cycle makes a participant of the ring on the key that all want, and nothing
// but a call to Redis on others. When the load is over, the token stops with the
// first who has gone, and the others' cycles end without a section.
func (r *ring) cycle(key string) func(func()) error {
	if key != (load{hot: true}).key(0) {
		return func(inside func()) error {
			inside()
			_, err := r.pass("ring:nobody", "0")
			return err
		}
	}
	turn := r.turns[r.joined]
	next := (r.joined*r.at.Processes + r.at.Process + 1) % (r.at.Processes * r.at.Goroutines)
	channel, number := ringChannel(next%r.at.Processes), strconv.Itoa(next)
	r.joined++
	return func(inside func()) error {
		select {
		case <-turn:
		case <-r.ended:
			return r.why
		}
		inside()
		heard, err := r.pass(channel, number)
		if err == nil && heard != 1 {
			err = fmt.Errorf("ring: %d heard of the turn of %s", heard, number)
		}
		return err
	}
}

func (r *ring) pass(channel, number string) (heard int64, err error) {
	cmd := r.client.B().Evalsha().Sha1(ringSHA).Numkeys(1).Arg(channel, number).Build()
	return r.client.Do(r.deadline.context(), cmd).AsInt64()
}

// over ends the waits when the load is over.
func (r *ring) over() { r.end(nil) }

func (r *ring) end(why error) {
	r.once.Do(func() {
		r.why = why
		close(r.ended)
	})
}

var errRingClosed = errors.New("ring: closed")

func (r *ring) close() {
	r.end(errRingClosed)
	r.heard.Close()
	r.client.Close()
}
