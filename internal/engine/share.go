package engine

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

// With [SharedHolds], a hold serves several sections at the same time: readers of this process
// share it. The last of them releases it.

// share begins another section in a hold of the key, without a call to Redis, and returns its lease. It
// returns nil if no hold may be shared, or if its tenure is over. Then Redis is asked, so that writers
// of this process and of others get their turn. k may be nil; otherwise its mutex is held.
func (k *Key) share(t Terms) *holdfast.Lease {
	h := k.shared(t)
	if h == nil {
		return nil
	}
	now := k.engine.Calls.Now()
	if now-h.extras.tenureBegan >= k.engine.LocalHandover {
		return nil
	}
	return h.begin(holdfast.ByHandover, now)
}

// shares reports whether callers with these terms may share a hold.
func (e *Engine) shares(t Terms) bool { return e.Holds == SharedHolds && t.Default() }

// shared is the newest hold of the key, whose mutex is held, that callers with these terms may share; nil:
// there is none. A hold with other than default terms is not shared. k may be nil.
func (k *Key) shared(t Terms) *Hold {
	if k == nil || !k.engine.shares(t) {
		return nil
	}
	for h := range k.holds() {
		if h.isDefault && h.Alive() {
			return h
		}
	}
	return nil
}

// shareAgain begins another section in a hold whose tenure is over, and another tenure, if Redis
// says that no writer waits. It returns the lease, or nil: the caller must ask for a hold of its
// own.
func (e *Engine) shareAgain(ctx context.Context, k *Key, t Terms) *holdfast.Lease {
	if e.Holds != SharedHolds || e.MaxHold > 0 { // a cap counts from the acquire: it would end the call too early
		return nil
	}
	k.Lock()
	h, now := k.shared(t), e.Calls.Now()
	k.Unlock()
	if h == nil {
		return nil
	}
	may, err := Call(ctx, e, k.Name, func(ctx context.Context) (bool, error) {
		return e.backend.(ReaderBackend).MayShare(ctx, k.Name, h.Owner)
	})
	if err != nil || !may {
		return nil
	}
	k.Lock()
	defer k.Unlock()
	if k.shared(t) != h {
		return nil
	}
	h.extras.tenureBegan = now
	lease := h.begin(holdfast.ByHandover, now)
	k.serveReaders(h)
	return lease
}

// serveReaders serves the waiters that may share a hold of the key, whose mutex is held.
func (k *Key) serveReaders(h *Hold) {
	if k.engine.Holds != SharedHolds || !h.isDefault {
		return
	}
	for w := range k.All() {
		if w.Terms.Default() {
			k.Serve(w, h.begin(holdfast.ByHandover, w.Since))
		}
	}
}

// dropSection removes a section that has ended from a hold. It reports whether others share the hold.
func (h *Hold) dropSection(s *section) bool {
	if h.extras.sections == nil {
		return false
	}
	delete(h.extras.sections, s)
	return len(h.extras.sections) > 0
}
