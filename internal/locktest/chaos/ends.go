package chaos

import (
	"fmt"
	"sync"
	"time"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// ends sees what a node does. An owner that the node was told to forget must
// never be given a key again, however late its acquire arrives: for that it leaves a
// tombstone, for a minute.
type ends struct {
	mu     sync.Mutex
	since  time.Time           // when young was begun
	young  map[string]struct{} // owners that were ended
	old    map[string]struct{} // and those before
	orphan []string            // what was found
}

// listen sees what a node does from now on, until it is restarted.
func (c *chaos) listen(node int) {
	c.nodes[node].Monitor(c.t, func(cmd redistest.Command) { c.ends[node].see(node, cmd) })
}

func (e *ends) see(node int, cmd redistest.Command) {
	if !cmd.Scripted || len(cmd.Words) < 3 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	owner := cmd.Words[2]
	switch cmd.Words[0] {
	case "HDEL":
		if time.Since(e.since) > 30*time.Second {
			e.since, e.young, e.old = time.Now(), map[string]struct{}{}, e.young
		}
		e.young[owner] = struct{}{}
	case "HSET":
		_, young := e.young[owner]
		_, old := e.old[owner]
		if young || old {
			e.orphan = append(e.orphan, fmt.Sprintf("%v node %d: %q", Clock(), node, cmd.Words))
		}
	}
}

// orphans are the owners that were given a key after their end.
func (c *chaos) orphans() (all []string) {
	for _, e := range c.ends {
		e.mu.Lock()
		all = append(all, e.orphan...)
		e.mu.Unlock()
	}
	return all
}
