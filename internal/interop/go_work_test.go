package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// work takes and gives back locks until told to stop, and records each lease, as
// Work.java does. A lease is believed in up to its deadline.
func (g *goAgent) work(c command) answer {
	file, err := os.OpenFile(c.File, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return failed(c, err)
	}
	defer file.Close()
	w := &goWork{command: c, locker: g.kinds[c.Kind], client: g.client, file: file}
	n := int64(0)
	for !g.stopped.Load() {
		kept, err := w.once()
		if err != nil {
			return failed(c, err)
		}
		if kept {
			n++
		}
	}
	return done(c, true, n, "")
}

// lastWork is the number of the last record of this process.
var lastWork atomic.Int64

// goWork is one thread's.
type goWork struct {
	command
	locker holdfast.Locker
	client rueidis.Client
	file   *os.File
}

func (w *goWork) once() (kept bool, err error) {
	key := w.Keys[rand.IntN(len(w.Keys))]
	l, err := w.acquire(key)
	for _, known := range []error{holdfast.ErrNotAcquired, holdfast.ErrUnavailable, holdfast.ErrUnknown} {
		if errors.Is(err, known) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	now := int64(locktest.Clock())
	id := fmt.Sprintf("%s-%d", w.Name, lastWork.Add(1))
	w.record("G %s %s %d %d %d", id, key, l.Fence(), now, now+time.Until(l.Deadline()).Nanoseconds())
	entered := w.visit(l, key, "1")
	if rand.IntN(10) == 0 {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	left := w.visit(l, key, "0")
	if entered >= 0 && left >= 0 && entered != left {
		w.record("X %s %d", id, left)
	}
	w.record("E %s %d", id, int64(locktest.Clock())+min(0, time.Until(l.Deadline()).Nanoseconds()))
	err = l.Unlock(context.Background())
	if errors.Is(err, holdfast.ErrLost) {
		w.record("L %s", id)
	}
	return err == nil, nil
}

// acquire does so in one of the ways that there are.
func (w *goWork) acquire(key string) (*holdfast.Lease, error) {
	c := command{Op: "tryLock", Key: key}
	switch rand.IntN(8) {
	case 0:
	case 1:
		c.Patience = ms(time.Duration(rand.IntN(50)) * time.Millisecond)
	case 2:
		c.Patience = ms(time.Duration(rand.IntN(1000)) * time.Millisecond)
	default:
		c.Op = "lock"
	}
	return acquire(context.Background(), w.locker, c)
}

// visits does in its section what Work.java does.
var visits = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
return redis.call('INCRBY', KEYS[2], ARGV[2])
`)

// visit returns the count of visits of the section, or -1 if it is not known that
// the lease still stands.
func (w *goWork) visit(l *holdfast.Lease, key, add string) int64 {
	n, err := visits.Exec(context.Background(), w.client, []string{key, named("visits", key)}, []string{l.Owner(), add}).AsInt64()
	if err != nil || l.Err() != nil {
		return -1
	}
	return n
}

func (w *goWork) record(format string, args ...any) {
	if _, err := fmt.Fprintf(w.file, format+"\n", args...); err != nil { // one write
		panic("record " + strconv.Quote(format) + ": " + err.Error())
	}
}
