package interop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Records are lines which all agents of a run append to one file, each by one
// write, so that a process which is killed loses none:
//
//	G <id> <key> <fence> <time> <sure>   an acquire returned, and the lock is surely held until sure
//	D <id> <sure>                        it is surely held until then
//	E <id> <sure>                        it ended; it was surely held until then
//	X <id> <visits>                      another was in the section meanwhile, as counted in Redis
//	L <id>                               the lock had been lost before its unlock
//
// Times are readings of the clock that all processes of a machine share, in ns. An
// id begins with the name of its process and a dash.

// hold is the time during which one thread surely held a lock: in Go up to its
// deadline, in Java as far as Redis has confirmed it.
type hold struct {
	id, key  string
	fence    int64
	from, to int64
	ended    bool
}

// records are what was recorded in a run.
type records struct {
	holds   map[string]*hold // by id
	crossed []string         // X
	lost    map[string]int   // L, by the language of the process
}

// readRecords reads a file of records. died says when processes were killed: by
// then their holds have ended.
func readRecords(t testing.TB, data string, died map[string]time.Duration) records {
	t.Helper()
	r := records{holds: map[string]*hold{}, lost: map[string]int{}}
	for line := range strings.Lines(data) {
		var kind, id string
		var h hold
		n, err := fmt.Sscan(line, &kind, &id)
		if err == nil && kind == "G" {
			_, err = fmt.Sscanf(line, "G %s %s %d %d %d", &h.id, &h.key, &h.fence, &h.from, &h.to)
			r.holds[id] = &h
		}
		was := r.holds[id]
		require.True(t, err == nil && n == 2 && was != nil, "record %q: %v", line, err)
		switch kind {
		case "D", "E":
			_, err = fmt.Sscanf(line[1:], " %s %d", &id, &was.to)
			require.NoError(t, err, line)
			was.ended = kind == "E"
		case "X":
			r.crossed = append(r.crossed, line)
		case "L":
			r.lost[langOf(id)]++
		}
	}
	for id, h := range r.holds {
		process, _, _ := strings.Cut(id, "-")
		at, dead := died[process]
		require.True(t, h.ended || dead, "%+v has no end", *h)
		if dead {
			h.to = min(h.to, int64(at))
		}
	}
	return r
}

// langOf is the language of a record's process, whose name it begins.
func langOf(id string) string {
	if strings.HasPrefix(id, inGo) {
		return inGo
	}
	return inJava
}

// overlaps finds two at once, and fences that do not grow.
func (r records) overlaps() (found []string) {
	byKey := map[string][]*hold{}
	for _, h := range r.holds {
		if h.from < h.to {
			byKey[h.key] = append(byKey[h.key], h)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all := byKey[key]
		slices.SortFunc(all, func(a, b *hold) int { return cmp.Compare(a.from, b.from) })
		longest, highest := all[0], all[0]
		for _, h := range all[1:] {
			if h.from < longest.to {
				found = append(found, fmt.Sprintf("%+v overlaps %+v", *h, *longest))
			}
			if h.fence != 0 && h.fence <= highest.fence {
				found = append(found, fmt.Sprintf("%+v comes after %+v", *h, *highest))
			}
			if h.to > longest.to {
				longest = h
			}
			if h.fence > highest.fence {
				highest = h
			}
		}
	}
	return found
}

// The check finds what it is for.
func TestRecords(t *testing.T) {
	for name, c := range map[string]struct {
		log   string
		found int
	}{
		"apart":            {"G Go1-1 k 5 10 20\nE Go1-1 15\nG Java1-1 k 6 15 15\nD Java1-1 18\nE Java1-1 20\n", 0},
		"two at once":      {"G Go1-1 k 0 10 20\nE Go1-1 15\nG Java1-1 k 0 14 14\nE Java1-1 20\n", 1},
		"other keys":       {"G Go1-1 k 0 10 20\nE Go1-1 15\nG Java1-1 l 0 14 14\nE Java1-1 20\n", 0},
		"never sure":       {"G Go1-1 k 0 10 20\nE Go1-1 15\nG Java1-1 k 0 14 14\nE Java1-1 14\nL Java1-1\n", 0},
		"a fence repeated": {"G Go1-1 k 5 10 20\nE Go1-1 15\nG Java1-1 k 5 15 15\nE Java1-1 20\n", 1},
		"none between":     {"G Go1-1 k 5 10 20\nE Go1-1 15\nG Java1-1 k 0 15 15\nE Java1-1 20\n", 0},
		"dead":             {"G Go2-1 k 0 10 90\nG Java1-1 k 0 50 50\nE Java1-1 60\n", 0},
		"before it died":   {"G Go2-1 k 0 10 90\nG Java1-1 k 0 49 49\nE Java1-1 60\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := readRecords(t, c.log, map[string]time.Duration{"Go2": 50})
			require.Len(t, r.overlaps(), c.found)
		})
	}
}

// Java's System.nanoTime() reads the same clock as ours.
func TestClock(t *testing.T) {
	_, agents := start(t, options{}, twoAgents...)
	for _, a := range agents {
		for range 20 {
			before := locktest.Clock()
			said := a.do(t, command{Op: "ping"}).Time
			after := locktest.Clock()
			require.True(t, int64(before) <= said && said <= int64(after), "%d is not from %d to %d in %s", said, before, after, a.lang)
		}
	}
}
