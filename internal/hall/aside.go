package hall

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// note remembers whether the last attempt was answered.
func (h *Hall) note(err error) {
	o := scripts.OutcomeOf(err)
	if away := o == scripts.Unavailable || o == scripts.Unknown; away != h.away.Load() {
		h.away.Store(away)
	}
}

// aside runs a call to Redis. While Redis is known to be away it does so beside
// the caller, who leaves when ctx ends, with an unknown outcome: rueidis does not
// watch the contexts of those who wait for somebody else's dial, which may take
// 5 s.
func aside[T any](ctx context.Context, h *Hall, call func(context.Context) (T, error)) (T, error) {
	if !h.away.Load() {
		return call(ctx)
	}
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	h.background(func() {
		value, err := call(ctx)
		came <- answer{value, err}
	})
	select {
	case a := <-came:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, errNoAnswer
	}
}
