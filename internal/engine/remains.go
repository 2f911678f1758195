package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// remains are the keys that may have something left in Redis after Close.
type remains struct {
	mu   sync.Mutex
	keys map[string]struct{} // quoted; guarded by mu
	err  error               // of the first; guarded by mu
}

// MayRemain notes, once the engine is closed, that a name may have something left.
func (e *Engine) MayRemain(name string, err error) {
	select {
	case <-e.closed:
	default:
		return
	}
	all := &e.remains
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.keys == nil {
		all.keys, all.err = make(map[string]struct{}), err
	}
	all.keys[errs.Quote(e.KeyOf(name))] = struct{}{}
}

const maxNamed = 10 // keys in an error of Close

func (all *remains) error() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.keys) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(all.keys))
	named := strings.Join(keys[:min(len(keys), maxNamed)], ", ")
	if more := len(keys) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("holdfast: close: %w: perhaps still held: %s: %w", holdfast.ErrUnknown, named, all.err)
}
