package scripts

import (
	"cmp"
	"context"

	"github.com/redis/rueidis"
)

// Result is the answer to one of several calls that share a round trip.
type Result[T any] struct {
	Value T
	Err   error // Redis refused this one, and carried out the others
}

// input is KEYS and ARGV of a script, for one lock or for several.
type input struct {
	keys, args []string // the array of keys has room for args as well
	wrong      *error   // why they are not sent; nil: they are. An error in its place would move them to the heap
}

// check notes the first of errs, if any, as wrong.
func (in *input) check(errs ...error) {
	if err := cmp.Or(errs...); err != nil && in.wrong == nil {
		first := err
		in.wrong = &first
	}
}

// forOne is the input for one lock, which stays on the stack.
func forOne() input { return input{keys: make([]string, 0, 16), args: make([]string, 0, 8)} }

// forMany is the input for several locks with so many keys and args each, as runEach sends it.
func forMany(locks, keys, args int) input {
	return input{keys: make([]string, 0, (keys+args)*locks+2), args: make([]string, 1, args*locks+1)}
}

// divide notes how many keys each lock has.
func (in input) divide(locks int) { in.args[0] = decimal(int64(len(in.keys) / locks)) }

// run is invoke with an input, and with more args.
func (r *Redis) run(ctx context.Context, s script, in input, more ...string) (rueidis.RedisMessage, error) {
	if in.wrong != nil {
		return rueidis.RedisMessage{}, *in.wrong
	}
	return r.invoke(ctx, s, len(in.keys), append(append(in.keys, in.args...), more...)...)
}

// runEach runs a script that does with each of some locks what another does with one
// (parts/each.lua), and takes in their answers.
func runEach[T any](ctx context.Context, r *Redis, s script, locks int, in input, results []Result[T], parse func(rueidis.RedisMessage, error) (T, error)) error {
	in.divide(locks)
	m, err := r.run(ctx, s, in)
	return parseEach(m, err, len(results), func(i int, m rueidis.RedisMessage, refused error) (err error) {
		results[i].Err = refused
		if refused == nil {
			results[i].Value, err = parse(m, nil)
		}
		return err
	})
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
