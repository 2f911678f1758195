package watchdog_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/watchdog"
)

// table stands for a server that grants leases.
type table struct {
	mu     sync.Mutex
	owners map[string]string // by key
}

func (t *table) owner(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[key]
}

type hold struct {
	watchdog.Lease
	key, owner string
	ended      chan error
}

func Example() {
	server := &table{owners: map[string]string{"printer": "me"}}
	dog := watchdog.New(watchdog.Config[*hold]{
		Lease: 300 * time.Millisecond,
		Renew: func(_ context.Context, holds []*hold, answers []watchdog.Answer) {
			for i, h := range holds {
				if server.owner(h.key) == h.owner {
					answers[i] = watchdog.Renewed
				} else {
					answers[i] = watchdog.NotOurs
				}
			}
		},
		Ended: func(h *hold, why error) { h.ended <- why },
	})
	defer dog.Close()

	h := &hold{key: "printer", owner: "me", ended: make(chan error, 1)}
	dog.Watch(h, watchdog.Terms{Anchor: time.Now(), Lease: 300 * time.Millisecond, Renew: true})
	fmt.Println("alive:", h.Alive())

	server.mu.Lock()
	server.owners["printer"] = "another"
	server.mu.Unlock()
	fmt.Println(<-h.ended)
	fmt.Println("alive:", h.Alive())
	// Output:
	// alive: true
	// the lease is no longer ours
	// alive: false
}
