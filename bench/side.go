package main

import (
	"fmt"
	"slices"
	"strings"
)

// column is one of the tables that put libraries side by side: a figure of a
// sample under a shorter name.
type column struct{ figure, head string }

var columns = []column{
	{"cycles/s", "cycles/s"},
	{"", "it ÷ ours"}, // of the first column
	{"lock p50 µs", "p50 µs"},
	{"lock p99 µs", "p99"},
	{"lock p99.9 µs", "p99.9"},
	{"lock max µs", "max"},
	{"commands/cycle", "commands"},
	{"server CPU µs/cycle", "server CPU µs"},
	{"client CPU µs/cycle", "client CPU µs"},
	{"allocations/cycle", "allocations"},
	{"bytes/cycle", "bytes"},
	{"Jain of goroutines", "Jain, goroutines"},
	{"Jain's index", "Jain, processes"},
}

// sideBySide is a table for each workload in which libraries make cycles, in the
// order of its subjects; the first is ours.
func (r *report) sideBySide() string {
	var b strings.Builder
	for _, m := range r.Workloads {
		if rows := m.rows(); len(rows) > 1 {
			fmt.Fprintf(&b, "\n### %s\n\n| |", m.Name)
			for _, c := range columns {
				b.WriteString(" " + c.head + " |")
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n" + strings.Join(rows, ""))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n## Side by side\n\nMedians of the rounds. p50 to max are from asking to having the lock, where many wait for " +
		"one release from that, and in a flash sale from the time at which a customer was to come, at the highest rate that was served; " +
		"what follows them is per cycle, which is one waiter or one customer there. Ratios are of figures of the same round.\n" + b.String()
}

func (m measured) rows() (rows []string) {
	speed := columns[0].figure
	for _, s := range m.workload.subjects {
		known := func(r round) bool { _, ok := r[s.name][speed]; return ok }
		if !slices.ContainsFunc(m.Rounds, known) {
			continue
		}
		row := "| " + s.name + " |"
		for _, c := range columns {
			value := of(s.name, c.figure)
			if c.figure == "" {
				value = ratio(s.name, m.workload.subjects[0].name, speed)
			}
			row += " " + number(median(m.values(value))) + " |"
		}
		rows = append(rows, row+"\n")
	}
	return rows
}
