package wire

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// errReply is returned for a reply that no script of ours gives; its outcome is
// Unknown.
var errReply = errors.New("unexpected reply from Redis")

// parser takes what invoke returns. An error goes through, with a zero value.
type parser[T any] func(rueidis.RedisMessage, error) (T, error)

// parseAcquired accepts a hold with fence numbers and without.
func parseAcquired(m rueidis.RedisMessage, err error) (AcquireReply, error) {
	if err == nil && m.IsArray() {
		return parseNumbers(m, 0)
	}
	if err == nil && m.IsString() {
		return parseHeldBy(m)
	}
	status, err := integer(m, err)
	if err != nil {
		return AcquireReply{}, err
	}
	switch status {
	case 0:
		return AcquireReply{OK: true}, nil
	case -2:
		return AcquireReply{Gone: true}, nil
	}
	left, err := remaining(status)
	if err != nil || left == time.Millisecond { // fair says 1 also of a free key, for which others wait
		return AcquireReply{Remaining: left}, err
	}
	return AcquireReply{Remaining: left, Why: errs.HeldBy("")}, nil
}

// parseHeldBy reads the answer that another with a label holds the key; without a label, that others come first.
func parseHeldBy(m rueidis.RedisMessage) (AcquireReply, error) {
	text, _ := m.ToString()
	number, label, _ := strings.Cut(text, " ")
	ms, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return AcquireReply{}, errReply
	}
	left, err := remaining(ms)
	if err != nil || label == "" {
		return AcquireReply{Remaining: left}, err
	}
	return AcquireReply{Remaining: left, Why: errs.HeldBy(label)}, nil
}

// parseFenced accepts no hold without fence numbers.
func parseFenced(m rueidis.RedisMessage, err error) (AcquireReply, error) {
	a, err := parseAcquired(m, err)
	if a.OK && a.Fence == 0 {
		return AcquireReply{}, errReply
	}
	return a, err
}

// parseNumbers reads a hold with its fence numbers: {held, first, last}.
func parseNumbers(m rueidis.RedisMessage, held int64) (AcquireReply, error) {
	values, err := array(m, nil)
	if err != nil || len(values) != 3 {
		return AcquireReply{}, errReply
	}
	status, err := integer(values[0], nil)
	first, err := integer(values[1], err)
	last, err := integer(values[2], err)
	if err != nil || status != held || first < 1 || last < first {
		return AcquireReply{}, errReply
	}
	return AcquireReply{OK: true, Fence: first, FenceEnd: last}, nil
}

func parseReleased(m rueidis.RedisMessage, err error) (ReleaseReply, error) {
	notified, err := integer(m, err)
	switch {
	case err != nil:
		return ReleaseReply{}, err
	case notified == -1:
		return ReleaseReply{}, nil
	case notified == -2:
		return ReleaseReply{Ours: true, Listeners: -1}, nil
	case notified < 0 || notified > math.MaxInt32:
		return ReleaseReply{}, errReply
	}
	return ReleaseReply{Ours: true, Listeners: int(notified)}, nil
}

func parseBool(m rueidis.RedisMessage, err error) (bool, error) {
	v, err := integer(m, err)
	if err != nil {
		return false, err
	}
	if v != 0 && v != 1 {
		return false, errReply
	}
	return v == 1, nil
}

// parseRenewed fills answers, which are all Unanswered, and leaves them so
// where it understands nothing.
func parseRenewed(m rueidis.RedisMessage, err error, answers []watchdog.Answer) error {
	if err == nil && m.IsInt64() {
		if all, _ := m.ToInt64(); all != 1 {
			return errReply
		}
		for i := range answers {
			answers[i] = watchdog.Renewed
		}
		return nil
	}
	values, err := array(m, err)
	if err != nil || len(values) != len(answers) {
		return unexpected(err)
	}
	return parseAnswers(values, answers)
}

// parseAnswers returns the first error that Redis gave for one key.
func parseAnswers(values []rueidis.RedisMessage, answers []watchdog.Answer) (err error) {
	for i, v := range values {
		var e error
		if v.IsString() {
			text, _ := v.ToString()
			e = refusedAs(text)
			if errors.Is(e, holdfast.ErrWrongType) {
				answers[i] = watchdog.NotOurs
				continue
			}
		} else if renewed, bad := parseBool(v, nil); bad != nil {
			e = bad
		} else if renewed {
			answers[i] = watchdog.Renewed
		} else {
			answers[i] = watchdog.NotOurs
		}
		if err == nil {
			err = e
		}
	}
	return err
}

func parseStatus(m rueidis.RedisMessage, err error) (holdfast.Status, error) {
	values, err := array(m, err)
	if err != nil {
		return holdfast.Status{}, err
	}
	return statusOf(values)
}

func statusOf(values []rueidis.RedisMessage) (holdfast.Status, error) {
	if len(values) == 0 {
		return holdfast.Status{}, nil
	}
	if len(values) != 4 {
		return holdfast.Status{}, errReply
	}
	owner, err := values[0].ToString()
	entries, err := integer(values[1], err)
	left, err := integer(values[2], err)
	label, bad := values[3].ToString()
	if err != nil || bad != nil || owner == "" || entries > math.MaxInt32 || entries < math.MinInt32 {
		return holdfast.Status{}, errReply
	}
	s := holdfast.Status{Held: true, Owner: owner, Entries: int(entries), Label: label}
	if s.Remaining, err = remaining(left); err != nil {
		return holdfast.Status{}, err
	}
	return s, nil
}

// parseQueued is parseStatus with the length of the queue.
func parseQueued(m rueidis.RedisMessage, err error) (holdfast.Status, error) {
	values, err := array(m, err)
	if err != nil || len(values) == 0 {
		return holdfast.Status{}, unexpected(err)
	}
	waiting, err := integer(values[0], nil)
	if err != nil || waiting < 0 {
		return holdfast.Status{}, errReply
	}
	s, err := statusOf(values[1:])
	s.Waiting = int(waiting)
	return s, err
}

// remaining turns the reply of PTTL for a key that exists into a duration.
func remaining(ms int64) (time.Duration, error) {
	switch {
	case ms == -1:
		return NoExpiry, nil
	case ms < 1:
		return 0, errReply
	case ms > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func integer(m rueidis.RedisMessage, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	if !m.IsInt64() {
		return 0, errReply
	}
	return m.ToInt64()
}

func array(m rueidis.RedisMessage, err error) ([]rueidis.RedisMessage, error) {
	if err != nil {
		return nil, err
	}
	if !m.IsArray() {
		return nil, errReply
	}
	return m.ToArray()
}

// unexpected returns err, or errReply where a reply came but is of no use.
func unexpected(err error) error { return cmp.Or(err, errReply) }
