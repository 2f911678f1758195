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

// maxMembers is what parts/settings.lua takes.
const maxMembers = 999

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
		if number, rest, _ = strings.Cut(rest, " "); number == "" || len(g.Members) == maxMembers {
			return Grant{}, false
		}
		g.Members = append(g.Members, client+":"+number)
	}
	return g, true
}

func parseGrant(m rueidis.RedisMessage, err error) (Grant, error) {
	if err != nil {
		return Grant{}, err
	}
	text, err := m.ToString()
	if err != nil {
		return Grant{}, errReply
	}
	g, ok := grantOf(text)
	if !ok && text != "" {
		return Grant{}, errReply
	}
	return g, nil
}

func parsePassed(m rueidis.RedisMessage, err error) (FairReply, error) {
	if err != nil {
		return FairReply{}, err
	}
	if m.IsString() {
		g, err := parseGrant(m, nil)
		if err != nil || g.Owner == "" {
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

func placeOf(m rueidis.RedisMessage) (int, error) {
	n, err := integer(m, nil)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, errReply
	}
	return int(n), nil
}

func parseEntered(m rueidis.RedisMessage, err error, owners int) (EnterReply, error) {
	if err == nil && m.IsInt64() { // the commonest reply: all wait
		place, err := placeOf(m)
		if err != nil {
			return EnterReply{}, err
		}
		return EnterReply{Ahead: leastAhead, Place: place, States: slices.Repeat([]OwnerState{Waiting}, owners)}, nil
	}
	values, err := array(m, err)
	if err != nil || len(values) != 4+owners {
		return EnterReply{}, unexpected(err)
	}
	java, err := integer(values[0], nil)
	ahead, err := integer(values[1], err)
	if err != nil || java < 0 || java > 2 || ahead < 0 || ahead > maxLease.Milliseconds() {
		return EnterReply{}, errReply
	}
	e := EnterReply{Java: java > 0, HeartbeatSoon: java == 2, Ahead: time.Duration(ahead) * time.Millisecond}
	if e.Grant, err = parseGrant(values[2], nil); err != nil {
		return EnterReply{}, err
	}
	if e.Place, err = placeOf(values[3]); err != nil {
		return EnterReply{}, err
	}
	e.States = make([]OwnerState, owners)
	for i, v := range values[4:] {
		state, err := integer(v, nil)
		if err != nil || state != int64(Waiting) && state != int64(Holding) && state != int64(Gone) {
			return EnterReply{}, errReply
		}
		e.States[i] = OwnerState(state)
	}
	return e, nil
}

func parseHeartbeatReply(m rueidis.RedisMessage, owners int) HeartbeatReply {
	if m.IsString() {
		text, _ := m.ToString()
		return HeartbeatReply{Err: refusedAs(text)}
	}
	values, err := array(m, nil)
	if err != nil || len(values) < 4 {
		return HeartbeatReply{Err: errReply}
	}
	status, err := integer(values[0], nil)
	if err != nil || status < 1 || status > 2 {
		return HeartbeatReply{Err: errReply}
	}
	h := HeartbeatReply{HeartbeatSoon: status == 2}
	if h.Grant, err = parseGrant(values[1], nil); err != nil {
		return HeartbeatReply{Err: err}
	}
	if h.Place, err = placeOf(values[2]); err != nil || h.Place > 0 && owners == 0 {
		return HeartbeatReply{Err: errReply}
	}
	if h.Label, err = values[3].ToString(); err != nil {
		return HeartbeatReply{Err: errReply}
	}
	for _, v := range values[4:] {
		i, err := integer(v, nil)
		if err != nil || i < 1 || i > int64(owners) {
			return HeartbeatReply{Err: errReply}
		}
		h.Absent = append(h.Absent, int(i)-1)
	}
	return h
}
