package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// shelves is a backend with some names on each server, on pages; in place of the name "…", the
// server does not answer. The name "denied" is refused, and "free" is free.
type shelves struct {
	obedient
	pages [][][]string
}

func (s shelves) Scans(context.Context, string) (scans []wire.Scan, _ error) {
	for i, pages := range s.pages {
		scans = append(scans, wire.Scan{Server: string(rune('A' + i)), Page: func(ctx context.Context, cursor uint64) (wire.Page, error) {
			if names := pages[cursor]; !slices.Contains(names, "…") {
				return wire.Page{Names: names, Next: (cursor + 1) % uint64(len(pages))}, nil
			}
			<-ctx.Done()
			return wire.Page{}, ctx.Err()
		}})
	}
	return scans, nil
}

func (s shelves) InspectEach(_ context.Context, names []string) (replies []wire.Result[holdfast.Status], err error) {
	for _, name := range names {
		switch name {
		case "denied":
			replies = append(replies, wire.Result[holdfast.Status]{Err: errDenied})
		case "free":
			replies = append(replies, wire.Result[holdfast.Status]{})
		default:
			replies = append(replies, wire.Result[holdfast.Status]{Value: holdfast.Status{Held: true, Owner: name}})
		}
	}
	return replies, nil
}

var errDenied = errors.New("denied")

// A key is listed once, wherever it is found again. The failure of a key or of a server names it,
// and does not hide the others.
func TestListOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, shelves{newObedient(), [][][]string{
			{{"a", "b", "a"}, {}, {"b", "free", "denied", "c"}},
			{{"d"}, {"…"}, {"never"}},
			{{"a", "e"}},
		}}, asItIs)
		var keys []string
		var failed []error
		for s, err := range e.Locks(t.Context(), "") {
			if err != nil {
				failed = append(failed, err)
				require.Empty(t, s.Owner)
				continue
			}
			keys = append(keys, s.Key)
		}
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, keys)
		require.Len(t, failed, 2)
		require.EqualError(t, failed[0], `holdfast: inspect "denied": outcome unknown: denied`)
		require.ErrorIs(t, failed[1], holdfast.ErrUnknown)
		require.EqualError(t, failed[1], `holdfast: list "*": B: outcome unknown: no answer in time`)

		// The end of ctx is that of the loop.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range e.Locks(ctx, "") {
			if n++; err != nil && !errors.Is(err, errDenied) {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				cancel()
			}
		}
		require.Equal(t, 3, n, "the first page, and the error")
	})
}
