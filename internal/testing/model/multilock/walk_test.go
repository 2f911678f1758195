package multilock_test

import (
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/model"
)

const modelSteps = 60 // of a walk

// TestModelIsWhatRedisDoes takes random walks through the scripts, on a real server
// and in the model: each call has to answer the same and to leave the same behind.
// Time is not waited for: a quarantine ends as DeclareNothingHeld ends it, and locks expire by
// the test's own doing.
func TestModelIsWhatRedisDoes(t *testing.T) {
	x := &modelRules{lease: 4, fences: true}
	x.fixed[modelOwners-1], x.most[modelClients-1], x.nodes[modelClients-1] = 5, 6, 2
	r := newModelReal(t, x)
	kinds := []string{"yes", "held", "gone", "no vote", "counts", "void yes", "not ours", "marked", "activated",
		"another deployment", "fence raised", "fence refused", "fence lowered", "restart", "forced", "plain yes"}
	model.Walks(t, 80, kinds, func(walk *model.Walk) {
		r.begin()
		w := &modelWalk{Walk: walk, real: r, rules: x}
		for range modelSteps {
			w.step(t)
		}
	})
}

// modelWalk is one walk.
type modelWalk struct {
	*model.Walk
	real  *modelReal
	rules *modelRules
	node  modelNode
}

func (w *modelWalk) step(t *testing.T) {
	c, o := int8(w.IntN(15)%7/3), modelOwner(1+w.IntN(modelOwners)) // the last client is of another deployment
	if w.node.holder != 0 && w.IntN(3) > 0 {
		o = w.node.holder
	}
	w.node.fence = 0 // numbers are compared with those before
	before := w.real.counter()
	switch n := w.IntN(100); {
	case n < 25:
		w.look(t, c)
	case n < 55:
		w.acquire(t, c, o, before)
	case n < 68:
		w.renew(t, c, o)
	case n < 80:
		w.end(t, o, before)
	case n < 82:
		w.force(t)
	case n < 91:
		w.write(t, o, before)
	default:
		w.disturb(t)
	}
	should := w.node.modelData
	should.fence, should.wait, should.seen, should.marker = 0, 0, 0, w.marker()
	require.Equal(t, should, w.real.state(), "%v", w)
}

// marker is as modelReal.state tells it.
func (w *modelWalk) marker() modelMarker {
	switch n := &w.node; {
	case n.marker == modelUnmarked:
		return modelUnmarked
	case n.own > 0 && n.wait == 0:
		return 1
	}
	return 2
}

func (w *modelWalk) look(t *testing.T, c int8) {
	how := modelLooking(w.IntN(3))
	if w.node.marker == modelUnmarked && w.IntN(4) > 0 {
		how = modelMark
	} else if w.node.seen > 0 && w.IntN(4) > 0 { // else there would hardly ever be a vote
		how, c = modelActivate, int8(bits.TrailingZeros8(w.node.seen))
	}
	w.Note("look %d by %d", how, c)
	vote, marked := w.node.look(w.rules, how, c)
	w.node.votes[c] = vote
	if how == modelMark {
		w.node.seen |= 1 << c
	}
	voted, done := w.real.look(how, c)
	require.Equal(t, []bool{vote != 0, marked}, []bool{voted, done}, "%v", w)
	w.Meet(marked && how != modelActivate, "marked")
	w.Meet(marked && how == modelActivate, "activated")
	w.Meet(w.node.own > 0 && w.node.wait == 0 && vote == 0, "another deployment")
}

func (w *modelWalk) acquire(t *testing.T, c int8, o modelOwner, before int64) {
	if w.node.votes[c] == 0 {
		return
	}
	text, plain := w.node.votes[c], w.IntN(3) == 0
	if plain {
		text |= modelPlain
	}
	w.Note("acquire %d by %d, plain %t", o, c, plain)
	says, minted := w.node.acquire(w.rules, o, text)
	reply, fence := w.real.acquire(c, o, plain)
	require.Equal(t, says, reply, "%v", w)
	w.Meet(says == modelYes && plain, "plain yes")
	if says == modelYes && !plain {
		require.Equal(t, int8(1), minted)
		require.Greater(t, fence, before, "%v", w)
		require.Equal(t, before, w.real.counter())
		w.write(t, o, before)
	}
	w.Meet(true, []string{"yes", "held", "gone", "no vote"}[says])
}

func (w *modelWalk) renew(t *testing.T, c int8, o modelOwner) {
	w.Note("renew %d by %d", o, c)
	ours := w.node.renew(w.rules, o)
	counts := w.node.votes[c] != 0 && w.node.votes[c] == w.node.marker
	yes := ours && (counts || w.node.votes[c] == 0) // a void yes is no answer
	did, counted := w.real.renew(c, o)
	require.Equal(t, []bool{yes, counts}, []bool{did, counted}, "%v", w)
	w.Meet(ours && counts, "counts")
	w.Meet(ours && !counts, "void yes")
	w.Meet(!ours, "not ours")
}

func (w *modelWalk) force(t *testing.T) {
	w.Note("force")
	was := w.node.holder != 0
	w.node.holder, w.node.left = 0, 0
	require.Equal(t, was, w.real.force(), "%v", w)
	w.Meet(was, "forced")
}

// end ends an owner, as the kinds of end ask for it.
func (w *modelWalk) end(t *testing.T, o modelOwner, before int64) {
	stone, tell, last := w.IntN(3) == 0, w.IntN(3) > 0, int64(0)
	var back *int8
	if d := int8(w.IntN(5) - 2); d < 2 && !stone && before+int64(d) > 0 {
		back, last = &d, before+int64(d)
	}
	w.Note("end %d, stone %t, tell %t, last %+d", o, stone, tell, last-before)
	ours := w.node.end(o, stone, back)
	did := w.real.end(o, stone, last, tell)
	require.Equal(t, ours, did, "%v", w)
	require.Equal(t, before+int64(w.node.fence), w.real.counter(), "%v", w)
	w.Meet(w.node.fence < 0, "fence lowered")
}

func (w *modelWalk) write(t *testing.T, o modelOwner, before int64) {
	d := int8(w.IntN(5) - 2)
	if before+int64(d) < 1 {
		d = 3 // some may be given back
	}
	w.Note("write %+d by %d", d, o)
	ours := w.node.writeFence(w.rules, o, d)
	did := w.real.writeFence(o, before+int64(d))
	require.Equal(t, ours, did, "%v", w)
	require.Equal(t, before+int64(w.node.fence), w.real.counter(), "%v", w)
	w.Meet(ours && d > 0, "fence raised")
	w.Meet(!ours, "fence refused")
}

// disturb does what happens to a node.
func (w *modelWalk) disturb(t *testing.T) {
	n, r := &w.node, w.real
	switch k := w.IntN(50); {
	case k < 15:
		w.Note("expire")
		n.holder, n.left = 0, 0
		r.server.Do(t, "DEL", modelKey)
	case k < 30:
		w.Note("sync")
		n.sync()
		r.sync()
	case k < 40:
		w.Note("promote")
		d := n.replica
		if d.holder != 0 {
			d.left = w.rules.lease
		}
		n.promote(d, true)
		r.promote(r.replica)
	case k < 42:
		w.Note("copy")
		d := n.modelData
		if d.holder != 0 {
			d.left = w.rules.lease
		}
		if d.marker != modelUnmarked {
			d.marker = modelForeign
		}
		n.sync() // as the server's test does
		n.promote(d, false)
		r.copied(n.most, n.size)
	case k < 48:
		w.Note("flush")
		n.empty(w.rules, false)
		r.server.Do(t, "FLUSHALL")
	default:
		w.Note("restart")
		n.empty(w.rules, true)
		r.restart()
		w.Meet(true, "restart")
	}
}

// notWalked are the calls of the quorum to a node that are not compared, and why.
var notWalked = map[string]string{
	"SetEntries":  "nested entries are not in the model: they change no hold's owner or expiry",
	"CheckVote":   "it changes nothing on a node",
	"Identify":    "nor does this",
	"Inspect":     "nor does this",
	"InspectEach": "nor does this",
	"Scans":       "nor does this",
}

// Each call that the quorum makes to a node is compared with a real one in walks.
func TestModelHasEachCall(t *testing.T) {
	called, walked := modelMethods(t, "../../../quorum/*.go", "redis"), modelMethods(t, "real_test.go", "redis")
	require.NotEmpty(t, called)
	for _, method := range called {
		_, left := notWalked[method]
		require.True(t, left != slices.Contains(walked, method), "%s: what stands for it in the model?", method)
	}
}

// modelMethods are the methods of wire.Redis that files call, through a field of that name.
func modelMethods(t *testing.T, files, field string) (methods []string) {
	names, err := filepath.Glob(files)
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, use := range regexp.MustCompile(`\.`+field+`\b(?:\.(\w+))?`).FindAllStringSubmatch(string(text), -1) {
			require.NotEmpty(t, use[1], "%s calls a node in a way that is not seen here", name)
			methods = append(methods, use[1])
		}
	}
	return methods
}
