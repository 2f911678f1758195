// Leader has three processes choose a leader, which alone works through a list. The first leader is killed, and the second
// one loses the lock: each time another one goes on.
//
//	go run ./examples/leader                          needs no server
//	go run ./examples/leader -redis localhost:6379    on a real Redis
//
// Package election campaigns, and runs lead for each term. A leader that has lost the lock learns of it at its next renewal:
// then its context ends. Until then it goes on, so the journal checks the fence.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

const (
	processes = 3
	lease     = time.Second // after the death of a leader, the next one begins within this time
	pieces    = 30          // of work
	killedAt  = 8           // the piece at which a leader is killed
	lostAt    = 16          // the piece at which a leader loses its lock, as if Redis had lost its memory
)

func main() { demo.MainOnRedis(run, process) }

type member struct { // one of the processes
	number int
	redis  *demo.Redis
	locker holdfast.Locker
}

func process(ctx context.Context, redis *demo.Redis, number int) error {
	locker, err := rlock.New(redis, holdfast.WithLease(lease), holdfast.WithFencing())
	if err != nil {
		return err
	}
	defer locker.Close()
	return (&member{number, redis, locker}).stand(ctx)
}

// stand stands for election until the work is done or ctx ends.
func (m *member) stand(ctx context.Context) error {
	candidate, err := election.New(m.locker, m.redis.Key("leader"))
	if err != nil {
		return err
	}
	return candidate.Run(ctx, m.lead)
}

// lead does the work of a leader. It returns when no work is left or its term is over.
func (m *member) lead(ctx context.Context) error {
	fence := holdfast.LeaseFrom(ctx).Fence()
	for first := true; ; {
		done, err := m.work(ctx, fence)
		switch {
		case err == nil && done == pieces:
			return nil
		case err == nil && first:
			fmt.Printf("Process %d leads from piece %d on.\n", m.number, done)
			first = false
		case errors.Is(err, demo.ErrLate): // the journal knows it before this process does
			<-ctx.Done()
		}
		switch done {
		case killedAt:
			demo.Die()
		case lostAt:
			_ = m.redis.Do(ctx, m.redis.B().Del().Key(m.redis.Key("leader")).Build())
		}
		err = demo.Sleep(ctx, 50*time.Millisecond)
		if errors.Is(err, holdfast.ErrLost) {
			fmt.Printf("Process %d has lost the lock. It has stopped, and stands again.\n", m.number)
		}
		if err != nil { // or the program is to end
			return err
		}
	}
}

// journal stands for a database. It adds a piece of work, unless a later leader was there or all is done.
var journal = rueidis.NewLuaScript(`
local last = tonumber(redis.call('LINDEX', KEYS[1], -1) or '0')
if last > tonumber(ARGV[1]) then return -1 end
local done = redis.call('LLEN', KEYS[1])
if done < tonumber(ARGV[2]) then done = redis.call('RPUSH', KEYS[1], ARGV[1]) end
return done`)

func (m *member) work(ctx context.Context, fence int64) (done int64, err error) {
	args := []string{strconv.FormatInt(fence, 10), strconv.Itoa(pieces)}
	if done, err = journal.Exec(ctx, m.redis, []string{m.redis.Key("journal")}, args).AsInt64(); done < 0 {
		err = demo.ErrLate
	}
	return done, err
}

func run(ctx context.Context, redis *demo.Redis) error {
	g, running := demo.NewGroup(ctx)
	for i := range processes {
		g.Go(func() (err error) {
			if err = demo.Run(running, i+1); errors.Is(err, demo.ErrKilled) {
				fmt.Printf("Process %d was killed.\n", i+1)
				err = nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	fences, err := redis.Do(ctx, redis.B().Lrange().Key(redis.Key("journal")).Start(0).Stop(-1).Build()).AsIntSlice()
	switch {
	case err != nil:
		return err
	case !slices.IsSorted(fences) || len(fences) != pieces:
		return fmt.Errorf("WRONG: two leaders at once: %v", fences)
	}
	fmt.Printf("All %d pieces of work are done, by %d leaders, one after the other.\n", pieces, len(slices.Compact(fences)))
	return nil
}
