package multilock_test

import (
	"fmt"
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

func newModelSearch(x *modelWorld, looksFor string, most int) *modelSearch {
	s := &modelSearch{protocol: &protocol{modelWorld: x, modelState: x.start(), hasher: newModelHasher(x)}}
	s.Protocol, s.Name, s.LooksFor, s.Most = s.protocol, x.name, looksFor, most
	return s
}

func (m *protocol) State() *modelState                     { return &m.modelState }
func (m *protocol) Hash() uint64                           { return m.hasher.hash(&m.modelState) }
func (m *protocol) Actions(to []modelAction) []modelAction { return m.actions(to) }
func (m *protocol) Check() string                          { return "" }
func (m *protocol) Describe(a modelAction) string          { return a.String() }

func (m *protocol) Do(a modelAction) string {
	m.did[a.kind]++
	m.do(a)
	m.met |= m.meets
	return m.broken
}

func (s modelState) String() string {
	var b strings.Builder
	for i, row := range s.rows {
		if row.phase != modelIdle {
			name := [...]string{"", "asks", "fences", "holds", "over"}[row.phase]
			fmt.Fprintf(&b, "%d %s(age %d, trust %d) ", i, name, row.age, row.trust)
		}
	}
	for _, n := range s.nodes {
		fmt.Fprintf(&b, "| held by %d for %d", n.holder-1, n.left)
		if n.own == 0 || n.wait > 0 {
			fmt.Fprintf(&b, ", no vote (marker %d, own %d, %d left)", n.marker, n.own, n.wait)
		}
		if n.fence != 0 {
			fmt.Fprintf(&b, ", fence %d", n.fence)
		}
	}
	return b.String()
}
