package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The marks between which the README has the table.
const (
	readmeBegin = "<!-- bench: begin -->"
	readmeEnd   = "<!-- bench: end -->"
)

// The marks of cells.
const (
	worse  = "▼"
	failed = "†"
)

// readme is the README's table and what is said of it, from the raw figures and the
// fixed texts above alone. It is empty if no workload of it was measured.
func (r *report) readme() string {
	var rows strings.Builder
	var shown, beaten, missing []string
	apart := make(map[string][]string) // rows by when and at which commit they were measured again
	for _, b := range briefs() {
		if !r.has(b.workload) {
			missing = append(missing, b.work)
		}
		for _, m := range r.Workloads {
			if m.Name != b.workload || b.quiet && !b.beaten(m) {
				continue
			}
			rows.WriteString(b.row(m))
			shown = append(shown, b.work)
			if m.Apart != "" {
				apart[m.Apart] = append(apart[m.Apart], b.work)
			}
			if b.beaten(m) {
				beaten = append(beaten, b.work)
			}
		}
	}
	if rows.Len() == 0 {
		return ""
	}
	text := fmt.Sprintf("Measured on %s: %s; %s.\n", r.whenAndWhat(), r.Machine, r.Versions) +
		fmt.Sprintf("At most %d rounds of %s for each library and row, in turn; some rows have fewer, or a multiple of the time.\n\n", r.Rounds, r.Time) +
		"| | holdfast | floor | rueidislock | redsync | redislock | etcd | ZooKeeper | Redisson | Redisson spin |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n" + rows.String() +
		"\nCycles (lock and unlock) per second where no unit is said. The columns after that are how many times better holdfast is, in\n" +
		"the median of the rounds; **bold ▼** is where a rival is better. In workloads that were measured and have no row, none is. The\n" +
		"floor is no rival: bare scripts, or for `fair` a token that goes round, without anything that makes a lock. rueidislock, etcd and\n" +
		"ZooKeeper renew leases and tell of a loss, as holdfast does, and the last two keep an order, as `fair` does; the others promise less.\n"
	if strings.Contains(rows.String(), failed) {
		text += "\n" + failed + " Waiters left asleep, or an error, in some rounds: see `bench/results/table.md`. Figures are from the other rounds.\n"
	}
	said := ""
	for _, s := range sayings {
		said += s.of(shown, beaten)
	}
	if said != "" {
		text += "\n" + said
	}
	for _, when := range slices.Sorted(maps.Keys(apart)) {
		text += fmt.Sprintf("\nMeasured again on %s: %s.\n", when, strings.Join(apart[when], "; "))
	}
	for _, left := range r.LeftOut {
		text += "\nLeft out: " + left + "\n"
	}
	if len(missing) > 0 {
		text += "\nNot measured in this run: " + strings.Join(missing, "; ") + ".\n"
	}
	return text
}

// others are whom the columns compare ours with.
func (b brief) others() []string {
	return []string{b.floor, rueidisName, redsyncName, redislockName, etcdName, zookeeperName, b.redisson, redissonSpinName}
}

func (b brief) row(m measured) string {
	ours := number(median(m.values(of(b.ours, b.figure))))
	if b.unit != "" && ours != number(nan) {
		ours += " " + b.unit
	}
	row := fmt.Sprintf("| %s | %s |", b.work, ours+m.dagger(b.ours))
	for _, other := range b.others() {
		row += " " + b.cell(m, other) + m.dagger(other) + " |"
	}
	return row + "\n"
}

// cell is how many times better ours is than another. A rival that is better is marked.
func (b brief) cell(m measured, other string) string {
	v := b.times(m, other)
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "∞"
	case v < 1 && other != b.floor:
		return "**" + number(v) + " " + worse + "**"
	}
	return number(v)
}

// times is how many times better ours is than another; NaN if that is not known. A
// figure that is a difference may happen to be less than nothing: then it is nothing.
func (b brief) times(m measured, other string) float64 {
	over, under := of(b.ours, b.figure), of(other, b.figure)
	if b.less {
		over, under = under, over
	}
	return median(m.values(func(r round) float64 { return max(over(r), 0) / max(under(r), 0) }))
}

// beaten reports whether a rival is better.
func (b brief) beaten(m measured) bool {
	return slices.ContainsFunc(b.others(), func(other string) bool { return other != b.floor && b.times(m, other) < 1 })
}

// dagger marks a subject that failed in a round, or in all of them.
func (m measured) dagger(subject string) string {
	if slices.ContainsFunc(m.Notes, func(n string) bool { return strings.HasPrefix(n, subject+" failed in round ") }) {
		return failed
	}
	return ""
}

// readmeFile is the page that has the table, seen from the folder of this program, and
// resultsDir what it tells of.
const (
	readmeFile = "../docs/benchmarks.md"
	resultsDir = "results"
)

// intoReadme puts the table of the results that are kept into the README, if it has
// a place for it.
func (r *report) intoReadme(dir string) error {
	if filepath.Clean(dir) != resultsDir {
		return nil
	}
	text, err := os.ReadFile(readmeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	before, _, after, ok := cutReadme(string(text))
	if !ok {
		return nil
	}
	return os.WriteFile(readmeFile, []byte(before+r.readme()+after), 0o644)
}

// cutReadme finds what stands between the marks, with the empty lines beside them.
func cutReadme(text string) (before, block, after string, ok bool) {
	before, rest, begins := strings.Cut(text, readmeBegin+"\n\n")
	block, after, ends := strings.Cut(rest, "\n"+readmeEnd)
	return before + readmeBegin + "\n\n", block, "\n" + readmeEnd + after, begins && ends
}
