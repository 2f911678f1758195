// Package report keeps the figures that bench has measured. From them alone it writes a table,
// pictures and the rows of the README. It measures nothing.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Results are the figures of a folder, as they are saved.
type Results struct {
	Machine   string
	Versions  string
	Load      string // load averages before the run
	Rounds    int
	Time      string
	LeftOut   []string `json:",omitempty"` // the rivals that could not be measured, and why
	Workloads []Workload
}

// Workload holds the results of one kind of work.
type Workload struct {
	Name     string
	Measured string   // when, and at which commit
	Subjects []string // in the order of the table; the first one is ours
	Rounds   []Round
	Notes    []string `json:",omitempty"` // what went wrong
	Stolen   float64  `json:",omitempty"` // largest share of the processors' time that the host took during a measurement
}

// Round holds the results of one round, by subject. A subject that failed is missing.
type Round map[string]Sample

// Sample holds the results of one measurement of one subject: figures by name. The name has the unit.
type Sample map[string]float64

// The files of a folder.
const (
	rawFile   = "raw.json"
	tableFile = "table.md"
)

// Load reads what Save wrote.
func Load(dir string) (*Results, error) {
	text, err := os.ReadFile(filepath.Join(dir, rawFile))
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", rawFile, err)
	}
	return r, nil
}

// Continue takes over the workloads that a folder has from an earlier run, so that a run of a
// few workloads replaces only those.
func (r *Results) Continue(dir string) error {
	before, err := Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	r.Workloads = before.Workloads
	return nil
}

// Put adds a workload. It replaces what was measured of it before.
func (r *Results) Put(w Workload) {
	if i := slices.IndexFunc(r.Workloads, func(old Workload) bool { return old.Name == w.Name }); i >= 0 {
		r.Workloads[i] = w
		return
	}
	r.Workloads = append(r.Workloads, w)
}

// find returns the workload of that name; an empty one if it was not measured.
func (r *Results) find(name string) Workload {
	if i := slices.IndexFunc(r.Workloads, func(w Workload) bool { return w.Name == name }); i >= 0 {
		return r.Workloads[i]
	}
	return Workload{Name: name}
}

// Save writes the figures, a line for each workload, and draws.
func (r *Results) Save(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`{"Name"`), []byte("\n"+`{"Name"`))
	if err := os.WriteFile(filepath.Join(dir, rawFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return r.Draw(dir)
}

// Draw writes the table and the pictures from the figures.
func (r *Results) Draw(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, tableFile), []byte(r.Markdown()), 0o644); err != nil {
		return err
	}
	return r.pictures(dir)
}

// of returns one figure of one subject; NaN if it is not known.
func (r Round) of(subject, figure string) float64 {
	if v, ok := r[subject][figure]; ok {
		return v
	}
	return math.NaN()
}

// known returns the values of all rounds in which a figure is known, in ascending order.
func (w Workload) known(value func(Round) float64) (all []float64) {
	for _, r := range w.Rounds {
		if v := value(r); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// median returns the middle of a figure's rounds, or the mean of the middle two.
func (w Workload) median(value func(Round) float64) float64 {
	all := w.known(value)
	if len(all) == 0 {
		return math.NaN()
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func (w Workload) medianOf(subject, figure string) float64 {
	return w.median(func(r Round) float64 { return r.of(subject, figure) })
}

// has reports whether a column says anything: an index or a share that is 1 for all does not.
func (w Workload) has(c column) bool {
	return slices.ContainsFunc(w.Subjects, func(s string) bool {
		v := w.medianOf(s, c.figure)
		return !math.IsNaN(v) && v != 1
	})
}

// main returns the figure by which the subjects are compared: the first column that is known.
func (w Workload) main() column {
	for _, c := range columns {
		if w.has(c) {
			return c
		}
	}
	return column{}
}

// better returns how many times better ours is than another subject, in the median of the
// rounds. A difference below 0 counts as 0.
func (w Workload) better(other string) float64 {
	c := w.main()
	return w.median(func(r Round) float64 {
		over, under := r.of(w.Subjects[0], c.figure), r.of(other, c.figure)
		if c.less {
			over, under = under, over
		}
		return max(over, 0) / max(under, 0)
	})
}

// ahead returns the rivals that are better than ours.
func (w Workload) ahead() (names []string) {
	for _, s := range w.Subjects {
		if IsRival(s) && w.better(s) < 1 {
			names = append(names, s)
		}
	}
	return names
}

// peers are the rivals that promise as much as rlock does over several processes.
var peers = []string{"rueidislock", "etcd", "zookeeper"}

var rivals = append([]string{"redsync", "redsync on go-redis", "redislock", "Redisson", "Redisson fair", "Redisson spin",
	"Redisson read/write", "Redisson permits", "Redisson semaphore"}, peers...)

// IsRival reports whether a subject is another library.
func IsRival(subject string) bool { return slices.Contains(rivals, subject) }
