package wire

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ParseGrant reads a message of the inbox of key. One that does not name key is not
// believed: it would make a waiter the holder of another lock's key.
func ParseGrant(key, message string) (Grant, bool) {
	text, of, named := strings.Cut(message, " for ")
	if !named || of != key {
		return Grant{}, false
	}
	return grantOf(text)
}

// longestRun is how many members parts/settings.lua takes.
const longestRun = 999

func grantOf(text string) (Grant, bool) {
	if text == "" {
		return Grant{}, false
	}
	owner, rest, known := strings.Cut(text, " ")
	g := Grant{Owner: owner}
	client, _, ok := strings.Cut(owner, ":")
	if !ok {
		return Grant{}, false
	}
	if !known {
		return g, true
	}
	var numbers [3]int64
	for i := range numbers {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 {
			return Grant{}, false
		}
		numbers[i] = n
	}
	if numbers[0] < 1 || numbers[0] > maxLease.Milliseconds() || numbers[2] < numbers[1] {
		return Grant{}, false
	}
	g.Lease, g.Fence, g.FenceEnd = time.Duration(numbers[0])*time.Millisecond, numbers[1], numbers[2]
	for rest != "" {
		var number string
		if number, rest, _ = strings.Cut(rest, " "); number == "" || len(g.Members) == longestRun {
			return Grant{}, false
		}
		g.Members = append(g.Members, client+":"+number)
	}
	return g, true
}

// grant reads a grant; "": none.
func (f *fields) grant() Grant {
	text := f.text()
	g, ok := grantOf(text)
	if !ok && text != "" {
		f.refuse()
	}
	return g
}

func (f *fields) place() int { return int(f.integer(0, math.MaxInt32)) }

func parsePassed(m rueidis.RedisMessage, err error) (FairReply, error) {
	if err != nil {
		return FairReply{}, err
	}
	if m.IsString() {
		text, _ := m.ToString()
		g, ok := grantOf(text)
		if !ok {
			return FairReply{}, errReply
		}
		return FairReply{Ours: true, Grant: g}, nil
	}
	reply, err := integer(m, nil)
	if err != nil || reply < 0 || reply > 2 {
		return FairReply{}, errReply
	}
	return FairReply{Ours: reply > 0, HeartbeatSoon: reply == 2}, nil
}

func parseConfirmed(m rueidis.RedisMessage, err error) (AcquireReply, error) {
	if err == nil && m.IsArray() {
		return parseNumbers(m, 1)
	}
	ours, err := parseBool(m, err)
	return AcquireReply{OK: ours}, err
}

// leastAhead is how far scores lie ahead where no Java waiter is near.
const leastAhead = 30 * time.Second

func parseEntered(m rueidis.RedisMessage, err error, owners int) (EnterReply, error) {
	if err == nil && m.IsInt64() { // the commonest reply: all wait
		place, _ := m.ToInt64()
		if place < 0 || place > math.MaxInt32 {
			return EnterReply{}, errReply
		}
		return EnterReply{Ahead: leastAhead, Place: int(place), States: slices.Repeat([]OwnerState{Waiting}, owners)}, nil
	}
	f := fieldsOf(m, err)
	java := f.integer(0, 2)
	e := EnterReply{
		Java: java > 0, HeartbeatSoon: java == 2, Ahead: time.Duration(f.integer(0, maxLease.Milliseconds())) * time.Millisecond,
		Grant: f.grant(), Place: f.place(), States: make([]OwnerState, owners),
	}
	for i := range e.States {
		e.States[i] = OwnerState(f.integer(int64(Gone), int64(Waiting)))
		if e.States[i] == -1 { // there is no such state
			f.refuse()
		}
	}
	return result(f, e)
}

func parseHeartbeatReply(m rueidis.RedisMessage, owners int) HeartbeatReply {
	if m.IsString() {
		text, _ := m.ToString()
		return HeartbeatReply{Err: refusedAs(text)}
	}
	f := fieldsOf(m, nil)
	h := HeartbeatReply{HeartbeatSoon: f.integer(1, 2) == 2, Grant: f.grant(), Place: f.place(), Label: f.text()}
	if h.Place > 0 && owners == 0 {
		f.refuse()
	}
	for f.more() {
		h.Absent = append(h.Absent, int(f.integer(1, int64(owners)))-1)
	}
	h, err := result(f, h)
	h.Err = err
	return h
}
