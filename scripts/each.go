package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

// Result is the answer to one of several calls that share a round trip.
type Result[T any] struct {
	Value T
	Err   error // Redis refused this one, and carried out the others
}

// invokeEach runs a script that does with each of some locks what another does with one
// (parts/each.lua), and takes in their answers. keys and args are those of all locks.
func invokeEach[T any](ctx context.Context, n *Redis, s script, locks int, keys, args []string, results []Result[T], parse func(rueidis.RedisMessage, error) (T, error)) error {
	m, err := n.invoke(ctx, s, len(keys), eachArgs(locks, keys, args)...)
	return parseResults(m, err, results, parse)
}

func parseResults[T any](m rueidis.RedisMessage, err error, results []Result[T], parse func(rueidis.RedisMessage, error) (T, error)) error {
	return parseEach(m, err, len(results), func(i int, m rueidis.RedisMessage, refused error) (err error) {
		results[i].Err = refused
		if refused == nil {
			results[i].Value, err = parse(m, nil)
		}
		return err
	})
}

// eachArgs returns what such a script is sent, in the room behind keys if there is enough.
func eachArgs(locks int, keys, args []string) []string {
	return append(append(keys, decimal(int64(len(keys)/locks))), args...)
}

// parseEach hands the answer for each lock to take; refused is the error with which
// Redis refused that lock.
func parseEach(m rueidis.RedisMessage, err error, locks int, take func(i int, m rueidis.RedisMessage, refused error) error) error {
	values, err := array(m, err)
	if err != nil || len(values) != locks {
		return unexpected(err)
	}
	for i, v := range values {
		if err := take(i, v, refusedAlone(v)); err != nil {
			return err
		}
	}
	return nil
}

// refusedAlone reads the answer {text}.
func refusedAlone(m rueidis.RedisMessage) error {
	values, err := array(m, nil)
	if err != nil || len(values) != 1 || !values[0].IsString() {
		return nil
	}
	text, _ := values[0].ToString()
	return refusedAs(text)
}
