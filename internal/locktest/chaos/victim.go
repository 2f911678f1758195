package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// victim is the place of one process of a run.
type victim struct {
	c       *chaos
	name    string             // of the place; its processes are name.1, name.2, …
	random  *rand.Rand         // of the goroutine that kills and pauses
	proxies []*redistest.Proxy // its ways to the nodes
	starts  int                // of that goroutine
	spoilt  atomic.Bool        // the ways are not all open

	mu    sync.Mutex // held while one process takes the place of another, and while it is spoken to
	child *Child
}

// orders are what a process is told when it starts.
type orders struct {
	How     Campaign
	Nodes   []string // their addresses
	File    string   // of records
	Process string
	Seed    uint64
}

func (v *victim) start() {
	v.starts++
	o := orders{How: v.c.how, File: v.c.file, Process: v.process(), Seed: v.random.Uint64()}
	for _, p := range v.proxies {
		o.Nodes = append(o.Nodes, p.Addr())
	}
	text, err := json.Marshal(o)
	require.NoError(v.c.t, err)
	v.child = StartChild(v.c.t, "chaos", string(text))
	v.child.Expect("ready")
}

func (v *victim) process() string { return v.name + "." + strconv.Itoa(v.starts) }

// restart kills the process and starts another.
func (v *victim) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.c.did("process killed", "%s", v.process())
	v.child.Kill()
	v.c.mu.Lock()
	v.c.died[v.process()] = Clock()
	v.c.mu.Unlock()
	v.start()
}

func (v *victim) say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.child.Say(line)
}

// drop has the process lose its connections to nodes.
func (v *victim) drop(nodes []int) {
	line := "drop"
	for _, node := range nodes {
		line += fmt.Sprintf(" %d", node)
	}
	v.say(line)
}
