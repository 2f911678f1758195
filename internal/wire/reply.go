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
	f := fieldsOf(m, nil)
	f.integer(held, held)
	first := f.integer(1, math.MaxInt64)
	return result(f, AcquireReply{OK: true, Fence: first, FenceEnd: f.integer(first, math.MaxInt64)})
}

func parseReleased(m rueidis.RedisMessage, err error) (ReleaseReply, error) {
	notified, err := integer(m, err)
	switch {
	case err != nil:
		return ReleaseReply{}, err
	case notified == -1:
		return ReleaseReply{}, nil
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

// parseRenewed fills the answers with the indexes of, and leaves them as they are where it understands nothing.
func parseRenewed(m rueidis.RedisMessage, err error, of []int, answers []watchdog.Answer) error {
	if err == nil && m.IsInt64() {
		if renewed, _ := m.ToInt64(); renewed != 1 {
			return errReply
		}
		for _, i := range of {
			answers[i] = watchdog.Renewed
		}
		return nil
	}
	values, err := arrayOf(m, err, len(of))
	if err != nil {
		return err
	}
	return parseAnswers(values, of, answers)
}

// parseAnswers returns the first error that Redis gave for one key.
func parseAnswers(values []rueidis.RedisMessage, of []int, answers []watchdog.Answer) (err error) {
	for at, v := range values {
		i := of[at]
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
		err = cmp.Or(err, e)
	}
	return err
}

func parseStatus(m rueidis.RedisMessage, err error) (s holdfast.Status, _ error) {
	f := fieldsOf(m, err)
	s.Waiting = int(f.integer(0, math.MaxInt64))
	if f.more() {
		s = f.heldBy(s)
	}
	return result(f, s)
}

// heldBy reads a holder, and returns s with it.
func (f *fields) heldBy(s holdfast.Status) holdfast.Status {
	s.Held, s.Owner, s.Entries = true, f.text(), int(f.integer(math.MinInt32, math.MaxInt32))
	left, err := remaining(f.integer(math.MinInt64, math.MaxInt64))
	if err != nil || s.Owner == "" {
		f.refuse()
	}
	s.Remaining, s.Label = left, f.text()
	return s
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

// fields are the elements of a reply, which is an array. They are read one after another.
type fields struct {
	rest []rueidis.RedisMessage
	err  error // why there are none, or errReply if one is not as it should be
}

func fieldsOf(m rueidis.RedisMessage, err error) *fields {
	rest, err := array(m, err)
	return &fields{rest, err}
}

func (f *fields) refuse() { f.err = cmp.Or(f.err, errReply) }

func (f *fields) next() (m rueidis.RedisMessage) {
	if len(f.rest) == 0 {
		f.refuse()
		return m
	}
	m, f.rest = f.rest[0], f.rest[1:]
	return m
}

// integer reads a number from least to most.
func (f *fields) integer(least, most int64) int64 {
	n, err := integer(f.next(), nil)
	if err != nil || n < least || n > most {
		f.refuse()
	}
	return n
}

func (f *fields) text() string {
	m := f.next()
	text, err := m.ToString()
	if err != nil {
		f.refuse()
	}
	return text
}

// more reports whether there are fields left to read.
func (f *fields) more() bool { return f.err == nil && len(f.rest) > 0 }

// result returns what was made of all fields, if they are as they should be.
func result[T any](f *fields, made T) (none T, _ error) {
	if f.more() {
		f.refuse()
	}
	if f.err != nil {
		return none, f.err
	}
	return made, nil
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

// arrayOf is array of so many values.
func arrayOf(m rueidis.RedisMessage, err error, n int) ([]rueidis.RedisMessage, error) {
	values, err := array(m, err)
	if err == nil && len(values) != n {
		return nil, errReply
	}
	return values, err
}
