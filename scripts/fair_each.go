package scripts

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

var (
	fairAcquireEach = scriptOf(asFunction("one", fairAcquire) + load("fair_each.lua").text)
	fairReleaseEach = scriptOf(asFunction("one", fairRelease) + load("fair_each.lua").text)
	fairLeaveEach   = scriptOf(asFunction("one", fairLeave) + load("fair_each.lua").text)
)

// FairAcquired is the answer to one of several that Acquire.
type FairAcquired struct {
	Acquired
	Err error // Redis refused this one
}

// AcquireEach does as Acquire for each of asks by itself, and fills answers, one for
// each.
func (f *Fair) AcquireEach(ctx context.Context, asks []Ask, answers []FairAcquired) error {
	keys, args := f.each(len(asks), fairKeys+1)
	for _, a := range asks {
		if err := checkHold(a.Key, a.Owner, a.Lease); err != nil {
			return err
		}
		keys = append(appendFairKeys(keys, a.Key), tombstone(a.Key, a.Owner))
		args = append(args, a.Owner, millis(a.Lease))
	}
	return f.runEach(ctx, fairAcquireEach, keys, args, len(answers), func(i int, m rueidis.RedisMessage, refused error) (err error) {
		if answers[i].Err = refused; refused == nil {
			answers[i].Acquired, err = parseTaken(m, nil)
		}
		return err
	})
}

// FairHold is a hold of a lock, and the last fence number used of it if reserved ones
// are left over, else 0.
type FairHold struct {
	Hold
	LastFence int64
}

// FairReleased is the answer to one of several that Release or Leave.
type FairReleased struct {
	Passed
	Err error // Redis refused this one
}

// ReleaseEach does as Release for each of holds by itself, of which no run was served
// and nothing is in doubt, and fills answers, one for each.
func (f *Fair) ReleaseEach(ctx context.Context, holds []FairHold, answers []FairReleased) error {
	keys, args := f.each(len(holds), fairKeys)
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		keys = appendFairKeys(keys, h.Key)
		args = append(args, h.Owner, decimal(h.LastFence))
	}
	return f.runEach(ctx, fairReleaseEach, keys, args, len(answers), takePassed(answers))
}

// LeaveEach does as Leave for each of holds by itself, of which a call may still arrive,
// and fills answers, one for each.
func (f *Fair) LeaveEach(ctx context.Context, holds []Hold, answers []FairReleased) error {
	keys, args := f.each(len(holds), fairKeys+1)
	for _, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		keys = append(appendFairKeys(keys, h.Key), tombstone(h.Key, h.Owner))
		args = append(args, h.Owner)
	}
	return f.runEach(ctx, fairLeaveEach, keys, args, len(answers), takePassed(answers))
}

// takePassed takes in an answer of several that are as of Release.
func takePassed(answers []FairReleased) func(i int, m rueidis.RedisMessage, refused error) error {
	return func(i int, m rueidis.RedisMessage, refused error) (err error) {
		if answers[i].Err = refused; refused == nil {
			answers[i].Passed, err = parsePassed(m, nil)
		}
		return err
	}
}

// each is room for the KEYS and the ARGV of fair_each, with so many keys for each lock,
// and the start of the ARGV.
func (f *Fair) each(locks, keys int) (names, args []string) {
	return make([]string, 0, (keys+2)*locks+2), append(make([]string, 0, 2*locks+2), decimal(int64(locks)), f.settings)
}

// runEach runs a script for several locks and takes in the answer of each, which may
// be that Redis refused it.
func (f *Fair) runEach(ctx context.Context, s script, keys, args []string, locks int, take func(i int, m rueidis.RedisMessage, refused error) error) error {
	values, err := array(f.node.run(ctx, s, len(keys), append(keys, args...)...))
	if err != nil || len(values) != locks {
		return unexpected(err)
	}
	for i, v := range values {
		var refused error
		if v.IsArray() {
			if one, _ := v.ToArray(); len(one) == 1 {
				text, err := one[0].ToString()
				if err != nil {
					return errReply
				}
				refused = refusal(strings.TrimPrefix(text, "ERR "))
			}
		}
		if err := take(i, v, refused); err != nil {
			return err
		}
	}
	return nil
}
