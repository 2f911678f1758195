package demo

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

// Table stands for a table of numbers in a database, with a fence in each row: a row takes no
// call with a smaller fence than it has seen. Such a call comes from a holder that has since
// lost the lock. In SQL:
//
//	UPDATE stock SET amount = $1, fence = $2 WHERE sku = $3 AND fence <= $2
//
// Reads carry the fence as well. After one, no write of an earlier holder can change what was
// read.
type Table struct{ *Redis }

// ErrLate is the error of a call with a smaller fence than that of an earlier one.
var ErrLate = errors.New("refused: a newer holder of the lock was here")

// call has the fence, the number of columns to set, these with their values, and the columns to read.
var call = rueidis.NewLuaScript(`
if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then
  return false
end
local last = 2 + 2 * ARGV[2]
redis.call('HSET', KEYS[1], 'fence', ARGV[1], unpack(ARGV, 3, last))
return last < #ARGV and redis.call('HMGET', KEYS[1], unpack(ARGV, last + 1)) or {}`)

// Read returns those of some columns of a row that have been set.
func (t Table) Read(ctx context.Context, row string, fence int64, columns ...string) (map[string]int64, error) {
	values, err := t.call(ctx, row, fence, 0, columns)
	if err != nil {
		return nil, err
	}
	got := make(map[string]int64, len(columns))
	for i, v := range values {
		if n, err := v.AsInt64(); err == nil {
			got[columns[i]] = n
		}
	}
	return got, nil
}

// Write sets columns of a row.
func (t Table) Write(ctx context.Context, row string, fence int64, set map[string]int64) error {
	var args []string
	for column, n := range set {
		args = append(args, column, strconv.FormatInt(n, 10))
	}
	_, err := t.call(ctx, row, fence, len(set), args)
	return err
}

func (t Table) call(ctx context.Context, row string, fence int64, sets int, args []string) ([]rueidis.RedisMessage, error) {
	args = append([]string{strconv.FormatInt(fence, 10), strconv.Itoa(sets)}, args...)
	values, err := call.Exec(ctx, t, []string{t.Key(row)}, args).ToArray()
	if rueidis.IsRedisNil(err) {
		err = ErrLate
	}
	return values, err
}

// Row returns all columns of a row, whatever its fence is.
func (t Table) Row(ctx context.Context, row string) (map[string]int64, error) {
	all, err := t.Do(ctx, t.B().Hgetall().Key(t.Key(row)).Build()).AsIntMap()
	delete(all, "fence")
	return all, err
}
