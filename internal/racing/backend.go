package racing

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// Backend is the backend of a lock kind whose processes race for a key that is released. A backend that says in
// Redis whose turn it is, as that of a read/write lock, keeps racing from deciding it: its releases report no
// Listeners, so nobody steps back, and a short Remaining makes the loop ask again soon.
type Backend interface {
	engine.Backend
	// Release ends the owner's hold with all its entries, and notifies those who wait for it. In doubt, it
	// undoes an acquire of unknown outcome, even one that arrives later.
	Release(ctx context.Context, h wire.ReleaseRequest) (wire.ReleaseReply, error)
	// Subscribe listens to the releases of name. The subscription lasts as long as callers wait for it here.
	Subscribe(name string) Subscription
}

// Splitting is a [Backend] with split votes. If all that want a key tried at the same time, none
// would succeed.
type Splitting interface {
	// RetryDelay is how long waiters pause after a split vote. While votes are often split,
	// they also pause after a message. tries counts recent split votes.
	RetryDelay(tries int) time.Duration
}

// Subscription is a [pubsub.Subscription], or several of them as one.
type Subscription interface {
	State() pubsub.State
	Wake() <-chan struct{}
	Close()
}
