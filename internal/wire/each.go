package wire

import (
	"context"
	"slices"

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
}

// forOne is the input for one lock, which stays on the stack.
func forOne() input { return input{keys: make([]string, 0, 16), args: make([]string, 0, 8)} }

// forEach is the input for some asks, as parts/each.lua divides it. add adds to it what one is sent.
func forEach[A any](asks []A, add func(input, A) input) (input, error) {
	in := forOne()
	keys, args := 0, 0 // of one
	for i, ask := range asks {
		if in = add(in, ask); i == 0 {
			keys, args = len(in.keys), len(in.args)
			in.keys, in.args = slices.Grow(in.keys, (keys+args)*len(asks)), slices.Grow(in.args, args*len(asks))
		}
		if len(in.keys) != keys*(i+1) || len(in.args) != args*(i+1) {
			return in, errUneven
		}
	}
	in.args = slices.Insert(in.args, 0, decimal(int64(keys)))
	return in, nil
}

// errUneven is only seen here: the script would give each lock the keys and arguments of others.
var errUneven = refuse("not as many owners for each of several locks")

// run is invoke with an input.
func (r *Redis) run(ctx context.Context, s script, in input) (rueidis.RedisMessage, error) {
	return r.invoke(ctx, s, len(in.keys), append(in.keys, in.args...)...)
}

// runEach does with each of asks by itself what s does with one, and fills results. For add see forEach.
func runEach[A, T any](ctx context.Context, r *Redis, s script, asks []A, add func(input, A) input, results []Result[T], parse parser[T]) error {
	in, err := forEach(asks, add)
	if err != nil {
		return err
	}
	m, err := r.run(ctx, *s.each, in)
	refused := func(err error) Result[T] { return Result[T]{Err: err} }
	return parseEach(m, err, results, refused, func(m rueidis.RedisMessage) (r Result[T], err error) {
		r.Value, err = parse(m, nil)
		return r, err
	})
}

// parseEach fills the results with the answer for each lock; refused makes one of the error with which
// Redis refused that lock.
func parseEach[T any](m rueidis.RedisMessage, err error, results []T, refused func(error) T, parse func(rueidis.RedisMessage) (T, error)) error {
	values, err := arrayOf(m, err, len(results))
	if err != nil {
		return err
	}
	for i, v := range values {
		if why := refusedAlone(v); why != nil {
			results[i] = refused(why)
		} else if results[i], err = parse(v); err != nil {
			return err
		}
	}
	return nil
}

// refusedAlone reads the answer {text}.
func refusedAlone(m rueidis.RedisMessage) error {
	values, err := arrayOf(m, nil, 1)
	if err != nil || !values[0].IsString() {
		return nil
	}
	text, _ := values[0].ToString()
	return refusedAs(text)
}
