package report

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// The marks between which the README has its rows.
const (
	readmeBegin = "<!-- bench -->\n\n"
	readmeEnd   = "\n<!-- /bench -->"
)

var errNoMarks = fmt.Errorf("the README has no lines %q and %q, each with an empty line inside", strings.TrimSpace(readmeBegin), strings.TrimSpace(readmeEnd))

// readmeColumns are the libraries of the README's table.
var readmeColumns = []string{"holdfast", "rueidislock", "redsync", "redislock"}

// readmeRows are its rows. why is for a row in which a rival is ahead.
var readmeRows = []struct{ work, workload, figure, unit, why string }{
	{
		"own keys, 1 goroutine", "uncontended/1", speed, "",
		"One goroutine alone is as fast with redsync and redislock, which take a key with a bare SET and whose release wakes nobody.",
	},
	{"own keys, 64 goroutines", "uncontended/64", speed, "", ""},
	{"one key, 64 goroutines in one process; holdfast: in memory", "hot/64 × 0s", speed, "", ""},
	{"one key, 8 processes × 8 goroutines; holdfast: mostly in memory", "processes/8 × 8 × 0s", speed, "", ""},
	{"1000 waiters of one key in one process, until all are served; holdfast: in memory", "waiting/1000", served, " ms", ""},
}

// Readme returns the README's table, with the best figure of each row in bold, and the text below it.
func (r *Results) Readme() string {
	first := r.find(readmeRows[0].workload)
	var rows strings.Builder
	var why, failed, all string
	for _, row := range readmeRows {
		w := r.find(row.workload)
		fmt.Fprintf(&rows, "| %s |", row.work)
		medians := make(Round)
		for _, s := range readmeColumns {
			medians[s] = Sample{row.figure: w.medianOf(s, row.figure)}
		}
		for _, s := range readmeColumns {
			v := medians.of(s, row.figure)
			cell := number(v)
			if !math.IsNaN(v) {
				cell += row.unit
			}
			if v == best(medians, row.figure, readmeColumns) {
				cell = "**" + cell + "**"
			}
			if slices.ContainsFunc(w.Notes, func(n string) bool { return strings.HasPrefix(n, s+" failed in round ") }) {
				cell += " †"
				failed = "\n† Some rounds left waiters asleep.\n"
				if math.IsNaN(v) {
					all = "All did where there is no figure.\n"
				}
			}
			fmt.Fprintf(&rows, " %s |", cell)
		}
		rows.WriteString("\n")
		if len(w.ahead()) > 0 {
			why += row.why + "\n"
		}
	}
	return "| | " + strings.Join(readmeColumns, " | ") + " |\n|---|" + strings.Repeat("---:|", len(readmeColumns)) + "\n" + rows.String() +
		fmt.Sprintf("\nMedians of %d rounds on one machine that server and clients share (%s;\n%s).\n%s",
			len(first.Rounds), r.Machine, first.Measured, why) + failed + all
}

// IntoReadme writes the table between the marks of a README.
func (r *Results) IntoReadme(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, _, after, err := cutReadme(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+r.Readme()+after), 0o644)
}

func cutReadme(text string) (before, block, after string, err error) {
	before, rest, begins := strings.Cut(text, readmeBegin)
	block, after, ends := strings.Cut(rest, readmeEnd)
	if !begins || !ends {
		err = errNoMarks
	}
	return before + readmeBegin, block, readmeEnd + after, err
}
