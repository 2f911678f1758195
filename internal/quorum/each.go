package quorum

import (
	"context"
	"iter"
	"slices"

	"github.com/holdfast-go/holdfast/internal/calls"
)

type answer[T any] struct {
	n     *node
	reply T
	err   error
}

// next waits for the next answer; false if ctx ends first. An answer that has come counts even then.
func next[T any](ctx context.Context, came <-chan answer[T]) (a answer[T], ok bool) {
	select {
	case a = <-came:
		return a, true
	case <-ctx.Done():
	}
	select {
	case a = <-came:
		return a, true
	default:
		return a, false
	}
}

// each runs f for every node in the background, each as one of tasks, and yields the answers as they
// come, until ctx ends.
func each[T any](ctx context.Context, tasks *calls.Tasks, nodes []*node, f func(*node) (T, error)) iter.Seq[answer[T]] {
	return func(yield func(answer[T]) bool) {
		came := make(chan answer[T], len(nodes))
		for _, n := range nodes {
			if !tasks.TryGo(func() {
				reply, err := f(n)
				came <- answer[T]{n, reply, err}
			}) {
				came <- answer[T]{n: n, err: errClosed}
			}
		}
		for range nodes {
			if a, ok := next(ctx, came); !ok || !yield(a) {
				return
			}
		}
	}
}

// all runs f for all nodes, and returns their answers by the end of ctx. It fails if fewer than need are
// good.
func all[T any](ctx context.Context, q *Quorum, need int, f func(*node) (T, error)) (replies []T, err error) {
	replies, errs, good := make([]T, len(q.nodes)), slices.Repeat([]error{calls.ErrNoAnswer}, len(q.nodes)), 0
	for a := range each(ctx, &q.short, q.nodes, f) {
		replies[a.n.index], errs[a.n.index] = a.reply, a.err
		if a.err == nil {
			good++
		}
	}
	if good < need {
		return replies, q.newError(need, errs)
	}
	return replies, nil
}
