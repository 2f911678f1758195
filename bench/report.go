package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// report is all that a run found out, as it is saved.
type report struct {
	Date      time.Time
	Machine   string
	Versions  string
	Load      string // load averages before the run
	Rounds    int
	Time      string
	Workloads []measured
}

// measured is a workload with what it gave.
type measured struct {
	workload workload
	Name     string
	Rounds   []round
	Notes    []string `json:",omitempty"`
}

func newReport(rounds int, d time.Duration) *report {
	return &report{
		Date:     time.Now().UTC().Truncate(time.Second),
		Machine:  fmt.Sprintf("%s/%s, %d × %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor()),
		Versions: versions(),
		Load:     firstLine("/proc/loadavg"),
		Rounds:   rounds,
		Time:     d.String(),
	}
}

// printHead begins the report in Markdown; the lines of the workloads follow.
func (r *report) printHead(w io.Writer) {
	fmt.Fprintf(w, "%s · %s · %s · load before %s · %d rounds of %s\n\n",
		r.Date.Format(time.DateTime), r.Machine, r.Versions, r.Load, r.Rounds, r.Time)
	fmt.Fprintln(w, "| workload | figure | target | median | min – max | |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---|")
}

// print writes the lines of the table.
func (m measured) print(w io.Writer) {
	for _, f := range m.workload.figures {
		fmt.Fprintln(w, f.line(m))
	}
}

// printNotes ends the report with what went wrong.
func (r *report) printNotes(w io.Writer) {
	for _, m := range r.Workloads {
		for _, n := range m.Notes {
			fmt.Fprintf(w, "\n%s: %s\n", m.Name, n)
		}
	}
}

func (f figure) line(m measured) string {
	var values []float64
	for _, r := range m.Rounds {
		if v := f.value(r); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	want, mark := "", ""
	if f.target.sign != "" {
		want = f.target.sign + " " + number(f.target.bound)
	}
	if len(values) == 0 {
		return fmt.Sprintf("| %s | %s | %s | – | – | |", m.Name, f.name, want)
	}
	middle := median(values)
	switch {
	case want == "":
	case f.target.met(middle):
		mark = "✓"
	default:
		mark = "missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s – %s | %s |", m.Name, f.name, want,
		number(middle), number(slices.Min(values)), number(slices.Max(values)), mark)
}

// save writes everything that was measured.
func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// number prints three digits or a little more.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.1f k", v/1e3)
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func versions() string {
	found := []string{runtime.Version()}
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		if fields := strings.Fields(string(out)); len(fields) > 2 {
			found = append(found, "Redis "+strings.TrimPrefix(fields[2], "v="))
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/redis/rueidis":
				found = append(found, "rueidis and rueidislock "+m.Version)
			case "github.com/go-redsync/redsync/v4":
				found = append(found, "redsync "+m.Version)
			case "github.com/redis/go-redis/v9":
				found = append(found, "go-redis "+m.Version)
			}
		}
	}
	return strings.Join(found, ", ")
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "processor"
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
