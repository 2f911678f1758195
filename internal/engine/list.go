package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// inspected is how many keys are asked for in a round trip. Other calls on the connection wait
// for them, about a millisecond.
const inspected = 256

// Locks yields the locks whose keys begin with prefix, as Matching does.
func (e *Engine) Locks(caller context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return e.Matching(caller, wire.Literal(prefix)+"*")
}

// Matching yields the locks whose keys match a pattern of SCAN, each once. After an error, it
// goes on with the next key, or with the next server if the error is not of a key.
func (e *Engine) Matching(caller context.Context, match string) iter.Seq2[holdfast.Status, error] {
	return func(yield func(holdfast.Status, error) bool) {
		scans, err := operate(caller, e, "", func(ctx context.Context) ([]wire.Scan, error) {
			return e.backend.Scans(ctx, wire.Literal(e.Prefix)+match)
		})
		if err != nil {
			yield(holdfast.Status{}, errs.Of("list", match, err))
			return
		}
		seen := make(map[string]bool)
		for _, scan := range scans {
			for status, err := range e.locksOf(caller, scan) {
				switch {
				case status.Key == "" && scan.Server != "":
					err = fmt.Errorf("%s: %w", scan.Server, err)
				case status.Key != "" && seen[status.Key]:
					continue
				case status.Key != "":
					seen[status.Key] = true
				}
				if !yield(status, errs.Of("list", match, err)) || caller.Err() != nil && err != nil || errors.Is(err, holdfast.ErrClosed) {
					return
				}
			}
		}
	}
}

// locksOf yields the locks of one server, some perhaps twice, with errors that name the key. An
// error without a key is the last.
func (e *Engine) locksOf(caller context.Context, scan wire.Scan) iter.Seq2[holdfast.Status, error] {
	return func(yield func(holdfast.Status, error) bool) {
		for cursor := uint64(0); ; {
			page, err := operate(caller, e, "", func(ctx context.Context) (wire.Page, error) { return scan.Page(ctx, cursor) })
			if err != nil {
				yield(holdfast.Status{}, err)
				return
			}
			for names := range slices.Chunk(page.Names, inspected) {
				each, err := operate(caller, e, "", func(ctx context.Context) ([]wire.Result[holdfast.Status], error) {
					return e.backend.InspectEach(ctx, names)
				})
				if err != nil {
					yield(holdfast.Status{}, err)
					return
				}
				for i, one := range each {
					key, free := e.KeyOf(names[i]), one.Err == nil && !one.Value.Held
					if key == "" || free || errors.Is(one.Err, holdfast.ErrWrongType) {
						continue
					}
					if !yield(e.completed(key, one.Value), errs.Of("inspect", key, calls.WithOutcome(one.Err))) {
						return
					}
				}
			}
			if cursor = page.Next; cursor == 0 {
				return
			}
		}
	}
}
