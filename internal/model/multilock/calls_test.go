package multilock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modelCall is what stands in the model for a way in which the quorum comes to call a
// node: actions, or why there is none.
type modelCall struct {
	actions []modelActionKind
	without string
}

func modelBy(actions ...modelActionKind) modelCall { return modelCall{actions: actions} }
func modelNot(why string) modelCall                { return modelCall{without: why} }

const (
	modelReads  = "it changes nothing on a node"
	modelNested = "nested entries are not in the model: they change no hold's owner or expiry"
	modelOneOf  = "the model has each hold of a shared call asked, renewed and ended by itself"
)

// modelCalls are all the ways from a function of package quorum, over the functions that it
// calls, to a call to a node, with the method of scripts.Node at the end. Functions that
// only run others are left out.
var modelCalls = map[string]modelCall{
	// A round.
	"Quorum.Acquire -> round.won":     modelBy(modelAnswer),
	"Quorum.Acquire -> Quorum.giveUp": modelBy(modelCutShort, modelTimeout),
	"Quorum.Acquire -> Quorum.meet":   modelBy(modelLook),
	// A no changes nothing on a node. So one that is asked again is one that the ask reaches late.
	"Quorum.Acquire -> round.ask":    modelBy(modelLock, modelArrive),
	"round.ask -> round.answered":    modelBy(modelLock, modelAnswer, modelTimeout),
	"round.ask -> node.ask":          modelBy(modelLock, modelArrive),
	"node.ask -> node.acquire":       modelBy(modelArrive, modelArriveLate),
	"newNode -> node.acquire":        modelBy(modelLock, modelAskNow, modelArrive, modelArriveLate),
	"node.acquire -> node.voting":    modelBy(modelLook),
	"node.acquire -> AcquireVoted":   modelBy(modelArrive, modelArriveLate),
	"round.won -> Quorum.writeBack":  modelBy(modelAnswer),
	"Quorum.writeBack -> node.raise": modelBy(modelWrite, modelWriteLost),
	"round.answered -> node.raise":   modelBy(modelWrite),
	"node.raise -> WriteFence":       modelBy(modelWrite, modelWriteLate),

	// Repairs.
	"round.won -> node.repair":      modelBy(modelAskNow),
	"round.answered -> node.repair": modelBy(modelAskNow),
	"renewal.finish -> node.repair": modelBy(modelAskNow),
	"renewal.ask -> node.repair":    modelBy(modelAskNow),
	"node.repair -> node.put":       modelBy(modelAskNow),
	"node.put -> node.keep":         modelBy(modelAskNow, modelEndAgain),
	"node.repairer -> node.doAll":   modelBy(modelAskNow, modelEndAgain),
	"node.doAll -> node.do":         modelBy(modelAskNow, modelEndAgain),
	"node.do -> node.add":           modelBy(modelAskNow),
	"node.do -> node.end":           modelBy(modelEnd, modelEndAgain),
	"node.add -> node.ask":          modelBy(modelAskNow),
	"node.observe -> node.keep":     modelNot(modelReads),
	"node.add -> node.raise":        modelBy(modelWrite, modelWriteLost),
	"node.keep -> node.repairer":    modelBy(modelAskNow, modelEndAgain),
	"node.repairer -> Ping":         modelNot(modelReads),

	// Renewals.
	"Quorum.Recount -> node.recount": modelNot(modelNested),
	"node.add -> node.recount":       modelNot(modelNested),
	"node.recount -> Recount":        modelNot(modelNested),
	"Quorum.Renew -> renewal.ask":    modelBy(modelRenewNow, modelRenewAnswer, modelRenewLost),
	"Quorum.Renew -> renewal.finish": modelBy(modelRenewAnswer),
	"renewal.ask -> node.voting":     modelBy(modelLook),
	"renewal.ask -> RenewVoted":      modelBy(modelRenewArrive, modelRenewLate),

	// Ends.
	"Quorum.CleanUp -> Quorum.Release": modelBy(modelTimeout, modelEnd),
	"Quorum.Release -> node.end":       modelBy(modelUnlock, modelEnd),
	"Quorum.Release -> node.endLater":  modelBy(modelEndAgain),
	"Quorum.Lost -> Quorum.giveUp":     modelBy(modelTick, modelEnd),
	"Quorum.giveUp -> node.end":        modelBy(modelEnd),
	"Quorum.giveUp -> node.endLater":   modelBy(modelEndAgain),
	"node.endLater -> node.put":        modelBy(modelEndAgain),
	"node.end -> node.endNow":          modelBy(modelEnd),
	"newNode -> node.asked":            modelBy(modelAnswer, modelEnd),
	"node.asked -> node.endNow":        modelBy(modelEnd),
	"node.endNow -> node.release":      modelBy(modelEnd),
	"newNode -> node.release":          modelBy(modelEnd),
	"node.release -> EndEach":          modelBy(modelEnd, modelEndAgain),

	// Votes.
	"Quorum.meet -> Quorum.checkAll":  modelBy(modelLook, modelStranger),
	"Quorum.checkAll -> node.voting":  modelBy(modelLook, modelStranger),
	"node.voting -> node.known":       modelBy(modelLook, modelStranger),
	"node.known -> node.learn":        modelBy(modelLook, modelStranger),
	"node.learn -> node.mark":         modelBy(modelLook, modelStranger),
	"node.learn -> node.check":        modelNot("a mistake that only seeded tests make"),
	"node.mark -> node.check":         modelBy(modelLook, modelStranger, modelBoot),
	"node.mark -> node.standing":      modelBy(modelLook, modelStranger, modelBoot),
	"node.standing -> node.check":     modelBy(modelLook, modelStranger, modelBoot),
	"node.check -> CheckNode":         modelBy(modelLook, modelBoot),
	"node.check -> Identify":          modelNot(modelReads),
	"Quorum.Bootstrap -> node.voting": modelBy(modelLook, modelStranger),
	"Quorum.Bootstrap -> node.mark":   modelBy(modelBoot),
	"Quorum.Bootstrap -> node.check":  modelBy(modelBoot),
	"node.voting -> node.refresh":     modelNot(modelReads),
	"node.refresh -> CheckVote":       modelNot(modelReads),

	// For operators.
	"Quorum.ForceRelease -> ForceRelease": modelBy(modelForce, modelForced),
	"Quorum.Inspect -> Inspect":           modelNot(modelReads),
	"Quorum.Nodes -> node.standing":       modelNot(modelReads),
	"New -> newNode":                      modelNot(modelReads),
}

// modelBatches are the fields of a node that make calls together, and what makes them.
var modelBatches = map[string]string{"asks": "node.acquire", "ends": "node.release"}

// modelPlumbing are functions that only run what they are given.
var modelPlumbing = []string{"call", "callFor", "node.observe"}

// The model has each way in which the quorum comes to call a node: a new one has to be
// listed with its action, or with the reason why it has none. TestModelIsWhatRedisDoes
// compares the calls that change a node with a real one.
func TestModelHasEachCall(t *testing.T) {
	code := newModelCode(t, "../../quorum")
	ways := code.ways()
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		_, known := modelCalls[way]
		require.True(t, known, "%s: what stands for it in the model?", way)
	}
	real, err := parser.ParseFile(token.NewFileSet(), "real_test.go", nil, 0)
	require.NoError(t, err)
	walked := map[string]bool{}
	ast.Inspect(real, func(n ast.Node) bool {
		if method, ok := modelMethod(n, "node"); ok {
			walked[method] = true
		}
		return true
	})
	for way, c := range modelCalls {
		require.True(t, ways[way], "%s: the code does so no more", way)
		require.NotEqual(t, len(c.actions) > 0, c.without != "", way)
		if _, method, _ := strings.Cut(way, " -> "); len(c.actions) > 0 && code.methods[method] {
			require.True(t, walked[method], "%s is compared with a real node", method)
		}
	}
}

// modelCode is what the functions of a package call.
type modelCode struct {
	calls   map[string]map[string]bool // by function
	methods map[string]bool            // of scripts.Node that are called
}

// modelImporter knows no other packages: the functions of one can be told without.
type modelImporter struct{}

func (modelImporter) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

func newModelCode(t *testing.T, folder string) *modelCode {
	names, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(set, name, nil, 0)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: modelImporter{}, Error: func(error) {}} // of other packages
	pkg, _ := check.Check(path.Base(folder), set, files, info)
	code := &modelCode{map[string]map[string]bool{}, map[string]bool{}}
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				code.add(t, f, pkg, info)
			}
		}
	}
	return code
}

// add notes what a function calls. Nodes are called through their field script only.
func (c *modelCode) add(t *testing.T, f *ast.FuncDecl, pkg *types.Package, info *types.Info) {
	name, scripts := f.Name.Name, 0
	if f.Recv != nil {
		name = strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + name
	}
	c.calls[name] = map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if method, ok := modelMethod(n, "script"); ok {
			c.calls[name][method], c.methods[method] = true, true
			scripts--
		}
		for field, call := range modelBatches {
			if _, ok := modelMethod(n, field); ok {
				c.calls[name][call] = true
			}
		}
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if n.Sel.Name == "script" {
				scripts++
			}
		case *ast.CallExpr:
			require.False(t, usesClient(n) && !slices.Contains([]string{"pubsub.New", "newNode"}, types.ExprString(n.Fun)),
				"%s makes calls of its own", name)
		case *ast.Ident:
			if callee, ok := info.Uses[n].(*types.Func); ok && callee.Pkg() == pkg {
				c.calls[name][modelFunction(callee)] = true
			}
		}
		return true
	})
	require.Zero(t, scripts, "%s calls a node in a way that is not seen here", name)
}

// usesClient says whether a call is of a client, or gives one away, but to ask its
// address or for scripts.Node.
func usesClient(n *ast.CallExpr) bool {
	fun := types.ExprString(n.Fun)
	if fun == "scripts.NewNodeWith" {
		return false
	}
	uses := strings.HasPrefix(fun, "client.") && fun != "client.Nodes"
	for _, a := range n.Args {
		uses = uses || types.ExprString(a) == "client"
	}
	return uses
}

// modelMethod is the method that is called of a field of that name.
func modelMethod(n ast.Node, field string) (string, bool) {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.SelectorExpr); ok && x.Sel.Name == field {
			return s.Sel.Name, true
		}
	}
	return "", false
}

// modelFunction names a function with its receiver.
func modelFunction(f *types.Func) string {
	if r := f.Signature().Recv(); r != nil {
		kind := r.Type().String()
		return kind[strings.LastIndexAny(kind, "./*")+1:] + "." + f.Name()
	}
	return f.Name()
}

// ways are the chains of calls that end in a call to a node.
func (c *modelCode) ways() map[string]bool {
	ends := maps.Clone(c.methods)
	for known := -1; known < len(ends); {
		known = len(ends)
		for f, callees := range c.calls {
			for callee := range callees {
				if ends[callee] && !slices.Contains(modelPlumbing, callee) {
					ends[f] = true
				}
			}
		}
	}
	all := map[string]bool{}
	for f, callees := range c.calls {
		for callee := range callees {
			if ends[callee] && !slices.Contains(modelPlumbing, callee) {
				all[f+" -> "+callee] = true
			}
		}
	}
	return all
}
