package wire

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/cluster"
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

// apart makes a call for the keys with the indexes of. If Redis refuses it for some of them, as refused says of the
// error, apart makes it again for parts of them at the same time, and so on down to each such key alone. So a key costs
// the others a few round trips, but not their answers. It returns the first error of the calls that were not divided
// further.
func apart(of []int, refused func(error) bool, call func(of []int) error) error {
	err := call(of)
	if len(of) <= 1 || !refused(err) {
		return err
	}
	parts := slices.Collect(slices.Chunk(of, (len(of)+apartBy-1)/apartBy))
	return inParallel(parts, func(part []int) error { return apart(part, refused, call) })
}

// spread makes a call for n keys, apart: one for all of them or, where a script has keys of one slot only, one for those
// of each slot, in parallel.
func (r *Redis) spread(n int, key func(i int) string, refused func(error) bool, call func(of []int) error) error {
	if !r.BySlot() {
		if err := apart(all(n), refused, call); !crossed(err) {
			return err
		}
	}
	slots := make(map[uint16][]int)
	for i := range n {
		slot := cluster.Slot(key(i))
		slots[slot] = append(slots[slot], i)
	}
	return inParallel(slices.Collect(maps.Values(slots)), func(slot []int) error { return apart(slot, refused, call) })
}

// all returns the indexes of n keys.
func all(n int) []int {
	of := make([]int, n)
	for i := range of {
		of[i] = i
	}
	return of
}

// inParallel makes a call for each of the parts, and returns one of their errors.
func inParallel(parts [][]int, call func(of []int) error) error {
	var calls sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		calls.Go(func() { errs[i] = call(part) })
	}
	calls.Wait()
	return cmp.Or(errs...)
}
