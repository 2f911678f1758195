package fair_test

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type modelSearch struct {
	model.Search[modelState, modelAction]
	*protocol
}

// newModelSearch searches a world; turns reports whether to look after lost turns in each state.
func newModelSearch(x *modelWorld, looksFor string, most int, turns bool) *modelSearch {
	for o := modelOwner(1); o <= modelWaiters*modelLives; o++ {
		x.client[o] = max(x.of[x.waiterOf(o)], 0)
	}
	p := &protocol{modelWorld: x, modelState: modelState{faults: x.budget, used: 1}}
	p.redis.fence = 1
	if turns {
		p.progress = newModelProgress(x)
	}
	s := &modelSearch{protocol: p}
	s.Protocol, s.Name, s.LooksFor, s.Most = p, x.name, looksFor, most
	return s
}

var modelSeed = maphash.MakeSeed()

func (m *protocol) State() *modelState                     { return &m.modelState }
func (m *protocol) Hash() uint64                           { return maphash.Comparable(modelSeed, m.modelState) }
func (m *protocol) Actions(to []modelAction) []modelAction { return m.actions(to) }

func (m *protocol) Do(a modelAction) string {
	m.did[a.kind]++
	m.do(a)
	return m.broken
}

func (m *protocol) Check() string {
	if m.progress == nil {
		return ""
	}
	return m.progress.check(m)
}

// Describe says what an action is about.
func (m *protocol) Describe(a modelAction) string {
	switch a.kind {
	case modelExecute, modelAnswer, modelTimeout:
		return fmt.Sprintf("%v: %v", a, m.calls[a.at])
	}
	return a.String()
}

func (c modelCall) String() string {
	name := [...]string{"", "acquire", "enter", "release", "leave", "confirm", "heartbeat", "renew"}[c.kind]
	text := fmt.Sprintf("%s%v by %d", name, c.owners, c.client)
	if c.attempt > 1 {
		text += " again"
	}
	return text
}

func (s modelState) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "holder %d for %d, queue %v, alive %v |", s.redis.holder, s.redis.left, s.redis.queue[:s.redis.length()], s.redis.alive)
	for _, w := range s.waiters {
		name := [...]string{"idle", "acquiring", "outside", "entering", "waiting", "confirming", "held", "done"}[w.phase]
		fmt.Fprintf(&b, " %d %s", w.owner, name)
		if w.phase == modelHeld {
			fmt.Fprintf(&b, " for %d by %d", w.trust, w.field)
		}
	}
	return b.String()
}
