package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress tells how the sale goes: on a terminal by one line that changes,
// elsewhere by a line each second. Owned by the sale's loop.
type progress struct {
	out           io.Writer
	terminal      bool
	total         int
	sold, soldOut int // orders
	started       time.Time
	shown         time.Time // when the last plain line was printed
}

func newProgress(out io.Writer, total int) *progress {
	p := &progress{out: out, total: total}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) start() {
	p.started = time.Now()
	p.shown = p.started
}

// add counts an order to which so many units were sold.
func (p *progress) add(units int) {
	if units > 0 {
		p.sold++
	} else {
		p.soldOut++
	}
}

// show is to be called a few times a second.
func (p *progress) show() {
	switch {
	case p.started.IsZero():
	case p.terminal:
		p.draw()
	case time.Since(p.shown) >= time.Second:
		p.shown = time.Now()
		fmt.Fprintln(p.out, p.line())
	}
}

// say prints a line of its own.
func (p *progress) say(format string, args ...any) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// end leaves the last state standing.
func (p *progress) end() {
	switch {
	case p.started.IsZero():
	case p.terminal:
		p.draw()
		fmt.Fprintln(p.out)
	default:
		fmt.Fprintln(p.out, p.line())
	}
}

func (p *progress) draw() {
	const width = 20
	full := width * (p.sold + p.soldOut) / p.total
	fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", width-full), p.line())
}

func (p *progress) line() string {
	return fmt.Sprintf("%d of %d orders: %d sold, %d sold out, %.1fs",
		p.sold+p.soldOut, p.total, p.sold, p.soldOut, time.Since(p.started).Seconds())
}
