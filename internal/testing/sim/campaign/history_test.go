package campaign_test

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// counter is what a key protects: writers add one to it, in two steps. Its history must be
// linearizable: each section takes effect at one instant of it, as if sections came one by one.
type counter struct {
	value   int
	history []porcupine.Operation
}

// section is what a holder has seen of a counter, first and last. A writer sees its own write.
type section struct {
	reads       bool
	first, last int
	fence       int64 // or 0
}

// ends notes the section of a holder that is about to unlock. One that has lost its lease has
// written nothing, and must not trust what it has read.
func (c *counter) ends(h *holder, began time.Time) {
	if !h.believes() {
		return
	}
	if !h.reads {
		c.value = h.seen.first + 1
	}
	h.seen.last = c.value
	c.history = append(c.history, porcupine.Operation{
		Call: h.since.Sub(began).Nanoseconds(), Input: h.seen, Return: time.Since(began).Nanoseconds(),
	})
}

// linearizable reports whether there is such an order of the sections. In it, the fence of a
// writer is larger than all earlier ones, and no earlier writer has a larger one than a reader, which
// may have been that writer.
func (c *counter) linearizable() bool {
	type state struct {
		value        int
		fence, wrote int64 // the largest one, and that of writers
	}
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			s, in := before.(state), input.(section)
			if in.reads {
				fenced := in.fence == 0 || in.fence >= s.wrote
				return fenced && in.first == s.value && in.last == s.value, state{s.value, max(s.fence, in.fence), s.wrote}
			}
			fenced := in.fence == 0 || in.fence > s.fence
			return fenced && in.first == s.value, state{in.last, max(s.fence, in.fence), in.fence}
		},
	}, c.history)
}
