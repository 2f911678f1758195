package wire

import (
	"cmp"
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// forbidden reports whether Redis refused a call before its script began, perhaps for only
// one of its keys, which the user has no right to. A user without the right to call
// scripts at all is a different case.
func forbidden(err error) bool {
	re, replied := errors.AsType[*rueidis.RedisError](err)
	if !replied {
		return false
	}
	text := re.Error()
	return strings.HasPrefix(text, "NOPERM ") && !strings.Contains(text, "permissions to run")
}

// apartBy is how many parts a call is divided into. One key of a hundred then costs its
// neighbours two more round trips, and Redis twenty calls.
const apartBy = 10

// apart repeats a call for n keys that was refused for some of them: for parts of them at
// the same time, and so on as long as refused says so of the error, down to each such key
// alone. So a key costs the others a few round trips, but not their answers. It returns
// the first error of the calls that were not divided further.
func apart(n int, refused func(error) bool, call func(from, to int) error) error {
	step := (n + apartBy - 1) / apartBy
	errs := make([]error, (n+step-1)/step)
	var all sync.WaitGroup
	for i := range errs {
		from, to := i*step, min((i+1)*step, n)
		all.Go(func() {
			errs[i] = call(from, to)
			if to-from > 1 && refused(errs[i]) {
				errs[i] = apart(to-from, refused, func(i, j int) error { return call(from+i, from+j) })
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
