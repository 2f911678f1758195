package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"time"
)

// report is all that a run found out, as it is saved.
type report struct {
	Date      time.Time
	Machine   string
	Versions  string
	Commit    string
	Load      string // load averages before the run
	Rounds    int
	Time      string
	LeftOut   []string `json:",omitempty"` // which rivals could not be measured, and why
	Workloads []measured
}

// measured is a workload with what it gave.
type measured struct {
	workload workload
	Name     string
	Rounds   []round
	Notes    []string `json:",omitempty"`
	Apart    string   `json:",omitempty"` // when and at which commit, where it was measured again by itself
	Stolen   float64  `json:",omitempty"` // largest share of the processors' time that the host took during a measurement
}

func newReport(rounds int, d time.Duration) *report {
	return &report{
		Date:     time.Now().UTC().Truncate(time.Second),
		Machine:  fmt.Sprintf("%s/%s, %d × %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor()),
		Versions: versions(),
		Commit:   commit(),
		Load:     firstLine("/proc/loadavg"),
		Rounds:   rounds,
		Time:     d.String(),
	}
}

// whenAndWhat is what was measured, and when.
func (r *report) whenAndWhat() string {
	return fmt.Sprintf("%s at commit %s", r.Date.Format(time.DateOnly), r.Commit)
}

// goesOn says why this run cannot be the rest of an earlier one, or, with again, a part
// of it that is measured anew; nil if it can.
func (r *report) goesOn(before *report, again bool) error {
	now, then := *r, *before
	if again {
		now.Commit = then.Commit
	}
	for _, one := range []*report{&now, &then} {
		one.Date, one.Load, one.LeftOut, one.Workloads = time.Time{}, "", nil, nil
	}
	if !reflect.DeepEqual(now, then) {
		return fmt.Errorf("that run was another: commit %s, %s, %s, at most %d rounds of %s", then.Commit, then.Machine, then.Versions, then.Rounds, then.Time)
	}
	return nil
}

func (r *report) has(name string) bool {
	return slices.ContainsFunc(r.Workloads, func(m measured) bool { return m.Name == name })
}

// put adds a workload, in the place of what was measured of it before.
func (r *report) put(m measured) {
	if i := slices.IndexFunc(r.Workloads, func(old measured) bool { return old.Name == m.Name }); i >= 0 {
		r.Workloads[i] = m
		return
	}
	r.Workloads = append(r.Workloads, m)
}

// The files of a report.
const (
	rawFile   = "raw.json"
	tableFile = "table.md"
	briefFile = "README-table.md"
)

// save writes what was measured so far, and what is made from it, into dir.
func (r *report) save(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, rawFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return r.render(dir)
}

// render writes what is made from the raw figures alone.
func (r *report) render(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, tableFile), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, briefFile), []byte(r.readme()), 0o644); err != nil {
		return err
	}
	return r.drawAll(dir)
}

// loadReport reads what save wrote. Each workload must be one that this program
// still has.
func loadReport(dir string) (*report, error) {
	text, err := os.ReadFile(filepath.Join(dir, rawFile))
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", rawFile, err)
	}
	known := make(map[string]workload)
	for _, w := range workloads() {
		known[w.name] = w
	}
	for i, m := range r.Workloads {
		w, ok := known[m.Name]
		if !ok {
			return nil, fmt.Errorf("%s: no workload is named %q any more: measure again", rawFile, m.Name)
		}
		r.Workloads[i].workload = w
	}
	return r, nil
}
