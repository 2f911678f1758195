package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// audit is what the books say after the sale, and the reports beside them.
type audit struct {
	orders, sold, soldOut, unplaced int // orders; unplaced ones after an early end only
	units                           int // sold
	oversold                        int // units that were sold and did not exist
	adrift                          int // units by which sold and left do not make up the stock
	lost                            int // orders reported as placed that are not in the book
	double                          int // orders placed more than once
	waits                           []time.Duration
	took                            time.Duration
}

// audit reads the books of a sale that is over.
func (s *shop) audit(of *sale, stock map[string]int) (*audit, error) {
	a := &audit{orders: len(of.orders), double: of.double, waits: slices.Sorted(slices.Values(of.waits)), took: of.took}
	books := make(map[string]map[string]int, len(stock))
	for sku, had := range stock {
		left, book, err := s.item(context.Background(), sku)
		if err != nil {
			return nil, err
		}
		books[sku] = book
		sold := 0
		for _, units := range book {
			sold += units
		}
		a.units += sold
		a.oversold += max(0, sold-had)
		a.adrift += max(sold+left-had, had-sold-left)
	}
	for i, o := range of.orders {
		units, found := books[o.SKU][o.ID]
		switch {
		case !found && of.reported[i]:
			a.lost++
		case !found:
			a.unplaced++
		case units > 0:
			a.sold++
		default:
			a.soldOut++
		}
	}
	return a, nil
}

func (a *audit) clean() bool { return a.oversold+a.adrift+a.lost+a.double == 0 }

func (a *audit) print(out io.Writer, guarded bool) {
	row := func(name string, value any, note string) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-24s %9v %s", name, value, note), " "))
	}
	fmt.Fprintln(out)
	row("orders", a.orders, "")
	row("sold", a.sold, fmt.Sprintf("(%d units)", a.units))
	row("sold out", a.soldOut, "")
	if a.unplaced > 0 {
		row("not placed", a.unplaced, "(stopped early)")
	}
	row("oversold", a.oversold, "units")
	row("lost or double orders", a.lost+a.double, "")
	row("stock and book differ by", a.adrift, "units")
	if guarded && len(a.waits) > 0 {
		row("wait for the lock, p50", a.wait(50), "")
		row("                   p99", a.wait(99), "")
		row("                   max", a.wait(100), "")
		row("locks per second", int(float64(len(a.waits))/a.took.Seconds()), "")
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, a.verdict(guarded))
}

func (a *audit) verdict(guarded bool) string {
	switch {
	case !a.clean() && !guarded:
		return fmt.Sprintf("WRONG, as was to be expected: %d units were sold that do not exist. Processes read the same stock\n"+
			"at the same time. Run it again without -guard=none to see what the lock is for.", a.oversold)
	case !a.clean():
		return "WRONG: something was oversold, lost or done twice."
	case !guarded:
		return "Well, by luck: without the lock nothing guarantees it. Try more -processes or -goroutines."
	case a.unplaced > 0:
		return "Stopped early. What was placed is right: nothing oversold, lost or done twice."
	}
	return "All is well: nothing oversold, lost or done twice."
}

// wait returns the given percentile of the waits, by nearest rank.
func (a *audit) wait(percent int) time.Duration {
	rank := (len(a.waits)*percent + 99) / 100
	return a.waits[rank-1].Round(10 * time.Microsecond)
}
