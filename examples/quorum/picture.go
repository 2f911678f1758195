package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/multilock"
)

const (
	lookEvery = 100 * time.Millisecond
	lookFor   = 100 * time.Millisecond // for the answer of a node; then it is away
)

// watch shows how the nodes stand until over is closed.
func (d *drill) watch(over <-chan struct{}, started time.Time) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.look(started)
		case <-over:
			d.look(started)
			return
		}
	}
}

// look asks all nodes how they stand and shows it.
func (d *drill) look(started time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()
	var now []standing
	for i, s := range d.lockers[0].Nodes(ctx) {
		now = append(now, standingOf(s, d.nodes[i]))
	}
	sections, double := d.counter.progress()
	d.picture.show(now, fmt.Sprintf("%5.1fs  %d sections, %d double holds", time.Since(started).Seconds(), sections, double))
}

// standing is how one node stands.
type standing struct {
	number                  int
	addr, vote, left, fault string
}

func standingOf(s multilock.NodeStatus, n *node) standing {
	is := standing{number: n.number, addr: n.addr, fault: n.marked()}
	switch {
	case s.Err != nil:
		is.vote = "away"
	case s.Vote:
		is.vote = "vote"
	default:
		is.vote, is.left = "no vote", fmt.Sprintf(" for another %.1fs", s.Left.Seconds())
	}
	return is
}

func (s standing) String() string {
	text := s.vote + s.left
	if s.fault != "" {
		text += " (" + s.fault + ")"
	}
	return text
}

// picture shows the nodes: on a terminal by a line for each that changes, elsewhere
// by one line for all of them when one has changed, and each second. One
// goroutine's own.
type picture struct {
	out      io.Writer
	terminal bool
	drawn    bool       // on the terminal
	last     []standing // shown
	shown    time.Time
}

func newPicture(out io.Writer) *picture {
	p := &picture{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// show is to be called a few times a second.
func (p *picture) show(now []standing, sum string) {
	if p.terminal {
		p.draw(now, sum)
		return
	}
	same := slices.EqualFunc(now, p.last, func(a, b standing) bool { return a.vote == b.vote && a.fault == b.fault })
	if same && time.Since(p.shown) < time.Second {
		return
	}
	p.last, p.shown = now, time.Now()
	var all []string
	for _, s := range now {
		all = append(all, fmt.Sprintf("%d %v", s.number, s))
	}
	fmt.Fprintf(p.out, "%s: %s\n", sum, strings.Join(all, ", "))
}

// draw puts the picture in the place of the one before.
func (p *picture) draw(now []standing, sum string) {
	var b strings.Builder
	if p.drawn {
		fmt.Fprintf(&b, "\x1b[%dA", len(now)+1)
	}
	for _, s := range now {
		fmt.Fprintf(&b, "\r\x1b[Knode %d  %s  %v\n", s.number, s.addr, s)
	}
	fmt.Fprintf(&b, "\r\x1b[K%s\n", sum)
	p.drawn = true
	fmt.Fprint(p.out, b.String())
}
