package scripts

import (
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// forbidden says whether Redis refused a call, before its script began, perhaps for
// one of its keys only: the user may not touch that key. That the user may not call
// scripts at all is the fault of no key.
func forbidden(err error) bool {
	re := (*rueidis.RedisError)(nil)
	if !errors.As(err, &re) {
		return false
	}
	text := re.Error()
	return strings.HasPrefix(text, "NOPERM ") && !strings.Contains(text, "permissions to run")
}

// apartBy is into how many parts a call is divided. Of a hundred keys one then costs
// its neighbours two more round trips, and Redis twenty calls.
const apartBy = 10

// apart makes a call for n keys again that was forbidden: for parts of them at the same
// time, and so on, down to each forbidden key alone. So a key costs the others a few
// round trips, but not their answers. It returns the first error of the calls that were
// not divided further.
func apart(n int, call func(from, to int) error) error {
	step := (n + apartBy - 1) / apartBy
	errs := make([]error, (n+step-1)/step)
	var all sync.WaitGroup
	for i := range errs {
		from, to := i*step, min((i+1)*step, n)
		all.Go(func() {
			errs[i] = call(from, to)
			if to-from > 1 && forbidden(errs[i]) {
				errs[i] = apart(to-from, func(i, j int) error { return call(from+i, from+j) })
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
