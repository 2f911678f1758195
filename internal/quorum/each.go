package quorum

import (
	"context"
	"iter"
)

// answer is what a node said.
type answer[T any] struct {
	n    *node
	said T
	err  error
}

// answers yields so many answers as they come, until ctx is over.
func answers[T any](ctx context.Context, came <-chan answer[T], many int) iter.Seq[answer[T]] {
	return func(yield func(answer[T]) bool) {
		for range many {
			select {
			case a := <-came:
				if !yield(a) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// each runs f for every node beside the caller, and yields the answers.
func each[T any](ctx context.Context, q *Quorum, nodes []*node, f func(*node) (T, error)) iter.Seq[answer[T]] {
	came := make(chan answer[T], len(nodes))
	for _, n := range nodes {
		if !q.spawnShort(func() {
			said, err := f(n)
			came <- answer[T]{n, said, err}
		}) {
			came <- answer[T]{n: n, err: errClosed}
		}
	}
	return answers(ctx, came, len(nodes))
}

// all runs f for all nodes, and returns what each said. The error, if fewer than need are
// good, tells why.
func all[T any](q *Quorum, need int, f func(*node) (T, error)) (said []T, err error) {
	said, errs, good := make([]T, len(q.nodes)), make([]error, len(q.nodes)), 0
	for a := range each(context.Background(), q, q.nodes, f) {
		said[a.n.index], errs[a.n.index] = a.said, a.err
		if a.err == nil {
			good++
		}
	}
	if good < need {
		return said, q.newError(need, errs)
	}
	return said, nil
}
