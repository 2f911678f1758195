package scripts

import (
	"context"
	"sync"
	"time"
)

var renew = load("plain/renew.lua")

// Answer is what Renew learned about one hold.
type Answer uint8

const (
	// Unanswered: Redis did not say; the hold may or may not have been renewed.
	Unanswered Answer = iota
	// Renewed: the hold is the owner's and lasts one lease from this call.
	Renewed
	// NotOurs: the owner holds the key no more.
	NotOurs
)

// renewArgs is room for the arguments of a call. rueidis copies them, so that
// it is free again after the call, however that ended.
var renewArgs = sync.Pool{New: func() any { return new([]string) }}

// Renew pushes the expiry of keys[i] out to one lease from now if owners[i]
// holds it, for up to a few hundred keys in one call, and fills answers[i]. It
// may be repeated.
//
// The answers count whether or not an error is returned: the error is the first
// that Redis gave, for the call or for one key. A key that has been replaced by
// something that is not a lock is NotOurs and no error. A key that the user may not
// touch costs the others two round trips more, and 21 calls in place of one.
func (n *Node) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []Answer) error {
	clear(answers)
	if err := CheckLease(lease); err != nil {
		return err
	}
	if len(keys) == 0 || len(owners) != len(keys) || len(answers) != len(keys) {
		return refuse("%d keys, %d owners and %d answers: not as many of each, or none", len(keys), len(owners), len(answers))
	}
	err := n.renew(ctx, lease, keys, owners, answers)
	if forbidden(err) && len(keys) > 1 {
		err = apart(len(keys), func(i, j int) error { return n.renew(ctx, lease, keys[i:j], owners[i:j], answers[i:j]) })
	}
	return err
}

// renew is one call of Renew.
func (n *Node) renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []Answer) error {
	room := renewArgs.Get().(*[]string)
	args := (*room)[:0]
	args = append(args, keys...)
	args = append(args, millis(lease))
	args = append(args, owners...)
	reply, err := n.run(ctx, renew, len(keys), args...)
	clear(args)
	*room = args
	renewArgs.Put(room)
	return parseRenewed(reply, err, answers)
}
