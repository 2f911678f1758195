package wire

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/watchdog"
)

var renew = load("renew")

// renewScript is the script by which a kind of lock renews. For each hold it is also given the name
// of what belongs to it.
type renewScript struct {
	script
	secondKey func(key, owner string) string // nil: nothing does
	permits   string                         // the number of permits of a key; "": it is no semaphore
}

// renewArgs is room for the arguments of a call. rueidis copies them, so that
// it is free again after the call, however that ended.
var renewArgs = sync.Pool{New: func() any { return new([]string) }}

// Renew pushes the expiry of keys[i] out to one lease from now if owners[i]
// holds it, for up to a few hundred keys in one call, and fills answers[i]. It
// may be repeated.
//
// The answers count whether or not an error is returned: the error is the first that Redis
// gave, for the call or for one key. A key that has been replaced by something that is not
// a lock is NotOurs and not an error, and so is a hold that has ended or whose timeout key has.
// A key that the user has no right to costs the others two more round trips, and 21 calls
// instead of one. So do keys of a moving slot of a Redis Cluster, of which each node has some;
// they cost up to 111 calls.
func (o *onRedis) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []watchdog.Answer) error {
	clear(answers)
	if len(keys) == 0 || len(owners) != len(keys) || len(answers) != len(keys) {
		return refuse("%d keys, %d owners and %d answers: not as many of each, or none", len(keys), len(owners), len(answers))
	}
	refused := func(err error) bool { return forbidden(err) || divided(err) }
	return o.redis.spread(len(keys), func(i int) string { return keys[i] }, refused, func(of []int) error {
		by, room := o.renew, renewArgs.Get().(*[]string)
		by.renews = true
		args := (*room)[:0]
		for _, i := range of {
			if args = append(args, keys[i]); by.secondKey != nil {
				args = append(args, by.secondKey(keys[i], owners[i]))
			}
		}
		numkeys := len(args)
		if args = append(args, millis(lease)); by.permits != "" {
			args = append(args, by.permits)
		}
		for _, i := range of {
			args = append(args, owners[i])
		}
		reply, shortfall, err := o.redis.write(ctx, by.script, numkeys, args...)
		clear(args)
		*room = args
		renewArgs.Put(room)
		if err = parseRenewed(reply, err, of, answers); shortfall != nil {
			discount(of, answers)
		}
		return cmp.Or(err, shortfall)
	})
}

// discount makes Unanswered of what is Renewed among the answers with the indexes of.
func discount(of []int, answers []watchdog.Answer) {
	for _, i := range of {
		if answers[i] == watchdog.Renewed {
			answers[i] = watchdog.Unanswered
		}
	}
}
