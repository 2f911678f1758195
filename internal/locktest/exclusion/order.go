package exclusion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// orderCheck follows the queues of a fair lock through all that Redis does. It finds owners
// that got a key before one that had entered earlier, unless the earlier one's client did
// not receive its grant in the same call.
type orderCheck struct {
	queues map[string]*orderedQueue // by the queue's name
	locks  map[string]*orderedQueue // by the key
	calls  int                      // of scripts and else
	call   []string                 // the last of them
	wrong  []string
}

// orderedQueue is one key's.
type orderedQueue struct {
	key         string
	waiting     []string
	holder      string
	run         []string        // neighbours behind the holder in the queue, of its client
	call        int             // in which the key was last taken
	undelivered map[string]bool // clients that did not hear, in that call
	entered     []string        // all that ever did, in their order
	granted     []string        // those of them that had their turn, in theirs
	inRuns      int             // how many of these had it in another's hold
	unknown     bool            // what it is now: some of what Redis did was not seen
}

func newOrderCheck(keys ...string) *orderCheck {
	o := &orderCheck{queues: map[string]*orderedQueue{}, locks: map[string]*orderedQueue{}}
	for _, key := range keys {
		q := &orderedQueue{key: key, undelivered: map[string]bool{}}
		o.queues[QueueOf(key)], o.locks[key] = q, q
	}
	return o
}

func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// see takes in the next command.
func (o *orderCheck) see(c redistest.Command) {
	if !c.Scripted {
		o.calls, o.call = o.calls+1, c.Words
		return
	}
	if len(c.Words) < 2 {
		return
	}
	args := c.Words[2:]
	if c.Words[0] == "TOUCH" {
		o.recalled(c.Words[1], args)
		return
	}
	if q := o.queues[c.Words[1]]; q != nil && !q.unknown {
		switch c.Words[0] {
		case "RPUSH":
			q.waiting, q.entered = append(q.waiting, args...), append(q.entered, args...)
		case "LPOP":
			n := 1
			if len(args) > 0 {
				n, _ = strconv.Atoi(args[0])
			}
			q.waiting = q.waiting[min(n, len(q.waiting)):]
		case "LTRIM":
			n, _ := strconv.Atoi(args[0])
			q.waiting = q.waiting[min(n, len(q.waiting)):]
		case "LSET": // an owner that leaves with others is renamed to the first one, and removed with it
			i, _ := strconv.Atoi(args[0])
			q.waiting[i] = args[1]
		case "LREM":
			q.remove(args[0], args[1])
		}
	}
	if q := o.locks[c.Words[1]]; q != nil && !q.unknown {
		switch c.Words[0] {
		case "HSET":
			if args[0] != q.holder {
				o.taken(q, args[0])
			}
		case "HDEL":
			if n := len(q.granted); n > 0 && q.granted[n-1] == args[0] && q.call == o.calls { // undone by the call that did it
				q.undelivered[clientOf(args[0])] = true
				q.granted = q.granted[:n-1]
			}
			if Verb(o.call) == "release" {
				o.served(q)
			}
			q.holder = ""
		}
	}
}

// remove takes that many elements called owner out of the queue, from its end if the number
// is negative, as LREM does.
func (q *orderedQueue) remove(count, owner string) {
	n, _ := strconv.Atoi(count)
	if n < 0 {
		n = -n
		slices.Reverse(q.waiting)
		defer func() { slices.Reverse(q.waiting) }()
	}
	for ; n > 0; n-- {
		if i := slices.Index(q.waiting, owner); i >= 0 {
			q.waiting = slices.Delete(q.waiting, i, i+1)
		}
	}
}

// taken notes that owner was made the holder.
func (o *orderCheck) taken(q *orderedQueue, owner string) {
	if q.call != o.calls {
		q.call = o.calls
		clear(q.undelivered)
	}
	at := slices.Index(q.waiting, owner)
	ahead := q.waiting
	if at >= 0 {
		ahead = q.waiting[:at]
		q.granted = append(q.granted, owner)
	}
	for _, before := range ahead {
		if !q.undelivered[clientOf(before)] {
			o.wrong = append(o.wrong, fmt.Sprintf("%s: %s is granted before %s", q.key, owner, before))
		}
	}
	q.holder, q.run = owner, nil
	if at < 0 { // it took a key without waiters
		return
	}
	for _, next := range q.waiting[at+1:] {
		if clientOf(next) != clientOf(owner) {
			break
		}
		q.run = append(q.run, next)
	}
}

// served notes the owners that had their turn in the hold that a release ends. They must
// have followed its owner in the queue, in this order, without those that have left
// meanwhile. A call counts when it is done: Redis may not know the script.
func (o *orderCheck) served(q *orderedQueue) {
	keys, _ := strconv.Atoi(o.call[2])
	args := o.call[3+keys:] // settings, owner, last fence, served
	if q.holder != args[1] {
		return // a repeated one, or it takes back what it granted
	}
	q.granted = append(q.granted, args[3:]...)
	q.inRuns += len(args[3:])
	run := q.run
	for _, owner := range args[3:] {
		at := slices.Index(run, owner)
		if at < 0 {
			o.wrong = append(o.wrong, fmt.Sprintf("%s: %s was not next in the run of %s", q.key, owner, args[1]))
			continue
		}
		run = run[at+1:]
	}
}

// forget has the check wait for recall: it will not see what Redis does until then.
func (o *orderCheck) forget() {
	for _, q := range o.locks {
		q.unknown = true
	}
}

// recall has Redis tell what there is, in its order among all that it does.
func (o *orderCheck) recall(t testing.TB, s *redistest.Server) {
	const tell = `for i = 1, #KEYS, 2 do
redis.call('TOUCH', KEYS[i], unpack(redis.call('LRANGE', KEYS[i], 0, -1)))
redis.call('TOUCH', KEYS[i + 1], unpack(redis.call('HKEYS', KEYS[i + 1])))
end`
	args := []string{"EVAL", tell, strconv.Itoa(2 * len(o.locks))}
	for key := range o.locks {
		args = append(args, QueueOf(key), key)
	}
	s.Do(t, args...)
}

// recalled takes in what a queue or a lock is.
func (o *orderCheck) recalled(name string, owners []string) {
	if q := o.queues[name]; q != nil {
		q.waiting = owners
	} else if q := o.locks[name]; q != nil {
		if !slices.Contains(owners, q.holder) { // of one that was not seen to take it the run is not known
			q.holder = ""
		}
		q.unknown = false
	}
}
