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
type Table struct{ *Redis }

// ErrLate is the error of a call with a smaller fence than that of an earlier one.
var ErrLate = errors.New("refused: a newer holder of the lock was here")

// update gets the fence, and columns with their values.
var update = rueidis.NewLuaScript(`
if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then return -1 end
return redis.call('HSET', KEYS[1], 'fence', unpack(ARGV))`)

// Write sets columns of a row.
func (t Table) Write(ctx context.Context, row string, fence int64, set map[string]int64) error {
	args := []string{strconv.FormatInt(fence, 10)}
	for column, n := range set {
		args = append(args, column, strconv.FormatInt(n, 10))
	}
	added, err := update.Exec(ctx, t, []string{t.Key(row)}, args).AsInt64()
	if added < 0 {
		err = ErrLate
	}
	return err
}

// Read returns those of some columns of a row that have been set. It writes the fence first: from
// then on, no write of an earlier holder can change what is read.
func (t Table) Read(ctx context.Context, row string, fence int64, columns ...string) (map[string]int64, error) {
	if err := t.Write(ctx, row, fence, nil); err != nil {
		return nil, err
	}
	values, err := t.Do(ctx, t.B().Hmget().Key(t.Key(row)).Field(columns...).Build()).ToArray()
	got := make(map[string]int64, len(columns))
	for i, v := range values {
		if n, err := v.AsInt64(); err == nil {
			got[columns[i]] = n
		}
	}
	return got, err
}

// Row returns all columns of a row, whatever its fence is.
func (t Table) Row(ctx context.Context, row string) (map[string]int64, error) {
	all, err := t.Do(ctx, t.B().Hgetall().Key(t.Key(row)).Build()).AsIntMap()
	delete(all, "fence")
	return all, err
}
