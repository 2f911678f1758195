package interop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// javaTurn is how long a Java waiter keeps its turn if its message had no receiver, as it
// subscribes only after it has entered, less rounding. On a busy machine it may be late;
// those of its program that follow and do not listen yet are dropped with it.
const javaTurn = 245 * time.Millisecond

// order follows the queue of a fair lock through all that Redis does. It finds owners that
// got the lock out of turn, or lost their place without having had their turn. That holds
// as long as no process dies and no connection is cut.
type order struct {
	key, queue string
	now        time.Time
	waiting    []string
	woken      map[string]time.Time // when waiters were first told that their turn has come
	popped     string               // the head that this call has taken out of the queue; "": none
	holder     string
	granted    map[string]int // by client
	late       int            // Java waiters that let their turn pass
	silent     string         // the client of the last of them in this call
	wrong      []string
}

func newOrder(key string) *order {
	return &order{key: key, queue: locktest.QueueOf(key), woken: map[string]time.Time{}, granted: map[string]int{}}
}

// see takes in the next command, which a script sent or a client.
func (o *order) see(c redistest.Command) {
	o.now = c.At
	if !c.Scripted { // the call before has ended
		o.settle()
		o.silent = ""
		return
	}
	words := c.Words
	if len(words) < 3 && !(len(words) == 2 && words[0] == "LPOP") {
		return
	}
	switch name, key := words[0], words[1]; {
	case key == o.queue && name == "RPUSH":
		o.waiting = append(o.waiting, words[2:]...)
		for _, owner := range words[2:] {
			delete(o.woken, owner)
		}
	case key == o.queue && name == "LPOP" && len(o.waiting) > 0:
		o.settle()
		if o.popped = o.waiting[0]; o.popped == o.holder {
			o.popped = "" // granted by this call, and then taken out
		}
		o.waiting = o.waiting[1:]
	case key == o.queue && name == "LSET": // waiters that leave together take the first one's name, and go with it
		i, _ := strconv.Atoi(words[2])
		o.waiting[i] = words[3]
	case key == o.queue && name == "LREM":
		o.remove(words[2], words[3])
	case key == o.queue && name == "LTRIM":
		o.wrong = append(o.wrong, "a queue was trimmed")
	case key == o.key && name == "HSET" && words[2] != o.holder:
		o.taken(words[2])
	case key == o.key && (name == "DEL" || name == "HDEL"):
		o.holder = ""
	case name == "PUBLISH" || name == "SPUBLISH":
		if owner, own := strings.CutPrefix(key, scripts.Channel(o.key)+":"); own && o.woken[owner].IsZero() {
			o.woken[owner] = c.At
		}
	}
}

// remove takes that many elements called owner out of the queue, from its end if the number
// is negative, as LREM does; Java's 0 means all.
func (o *order) remove(count, owner string) {
	n, _ := strconv.Atoi(count)
	if n < 0 {
		n = -n
		slices.Reverse(o.waiting)
		defer func() { slices.Reverse(o.waiting) }()
	}
	for i := 0; i < max(n, 1); i++ {
		if at := slices.Index(o.waiting, owner); at >= 0 {
			o.waiting = slices.Delete(o.waiting, at, at+1)
		}
	}
}

// settle ends what a call did: a head that it took out has let its turn pass, or was
// thrown out.
func (o *order) settle() {
	if o.popped == "" {
		return
	}
	client, _, _ := strings.Cut(o.popped, ":")
	woken := o.woken[o.popped]
	passed := !woken.IsZero() && o.now.Sub(woken) >= javaTurn
	if isJava(o.popped) && (passed || client == o.silent) {
		o.late++
		o.silent = client
	} else {
		o.wrong = append(o.wrong, o.popped+" was thrown out")
	}
	o.popped = ""
}

// taken notes that owner holds the lock now.
func (o *order) taken(owner string) {
	if o.popped != owner {
		o.settle()
		if len(o.waiting) > 0 && o.waiting[0] != owner {
			o.wrong = append(o.wrong, fmt.Sprintf("%s got the lock before %v", owner, o.waiting))
		}
	}
	o.popped, o.holder = "", owner
	client, _, _ := strings.Cut(owner, ":")
	o.granted[client]++
}

// The check finds what it is for.
func TestOrder(t *testing.T) {
	const a, b = "12345678-1234-4123-8123-123456789abc:1", "12345678-1234-4123-8123-123456789abd:01" // of Java and of Go
	const (
		call   = `1000.000000 [0 1] "EVALSHA"`
		enterA = `1000.000000 [0 lua] "rpush" "redisson_lock_queue:{k}" "` + a + `"`
		enterB = `1000.000000 [0 lua] "RPUSH" "redisson_lock_queue:{k}" "` + b + `"`
		wakeA  = `1000.000000 [0 lua] "PUBLISH" "redisson_lock__channel:{k}:` + a + `" "0"`
		wakeS  = `1000.000000 [0 lua] "SPUBLISH" "redisson_lock__channel:{k}:` + a + `" "0"`
		pop    = `1000.200000 [0 lua] "lpop" "redisson_lock_queue:{k}"`
		late   = `1000.300000 [0 lua] "lpop" "redisson_lock_queue:{k}"`
		leaveA = `1000.200000 [0 lua] "lrem" "redisson_lock_queue:{k}" "0" "` + a + `"`
		holdA  = `1000.200000 [0 lua] "hset" "k" "` + a + `" "1"`
		holdB  = `1000.300000 [0 lua] "HSET" "k" "` + b + `" "1"`
		free   = `1000.300000 [0 lua] "del" "k"`
	)
	for name, c := range map[string]struct {
		lines []string
		wrong int
	}{
		"in order":            {[]string{call, enterA, call, enterB, call, pop, holdA, call, free, holdB, pop, call}, 0},
		"nobody waits":        {[]string{call, pop, holdA, call, free, call, pop, holdB}, 0},
		"out of turn":         {[]string{call, enterA, call, enterB, call, holdB, call}, 1},
		"thrown out":          {[]string{call, enterA, call, enterB, call, wakeA, call, pop, call}, 1},
		"thrown out by a try": {[]string{call, enterA, call, enterB, call, pop, pop, holdB, call}, 1},
		"never woken":         {[]string{call, enterA, call, enterB, call, late, holdB, call}, 1},
		"passed in a shard":   {[]string{call, enterA, call, enterB, call, wakeS, call, late, holdB, late, call}, 0},
		"let its turn pass":   {[]string{call, enterA, call, enterB, call, wakeA, call, late, holdB, late, call}, 0},
		"gave up":             {[]string{call, enterA, call, enterB, call, leaveA, call, pop, holdB}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrder("k")
			for _, line := range c.lines {
				seen, ok := redistest.ParseMonitored("+" + line + "\r\n")
				require.True(t, ok, line)
				o.see(seen)
			}
			require.Len(t, o.wrong, c.wrong, o.wrong)
		})
	}
}
