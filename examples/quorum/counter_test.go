package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type fakeLease struct{ err error }

func (l *fakeLease) Err() error { return l.err }

var errLost = errors.New("lost")

func enter(t *testing.T, c *counter, l lease) int {
	t.Helper()
	read, ok := c.enter(l, time.Millisecond)
	require.True(t, ok)
	return read
}

func TestCounterFindsDoubleHold(t *testing.T) {
	c := &counter{inside: map[lease]bool{}}
	a, b := &fakeLease{}, &fakeLease{}
	first := enter(t, c, a)
	second := enter(t, c, b)
	c.leave(b, second)
	c.leave(a, first)
	require.Equal(t, 1, c.double)
	require.Equal(t, 2, c.sections)
	require.Equal(t, 1, c.value, "one is missing from the counter")
}

// Whoever has lost its lease is not inside any more, and writes nothing.
func TestCounterKnowsLostLeases(t *testing.T) {
	c := &counter{inside: map[lease]bool{}}
	a, b := &fakeLease{}, &fakeLease{}
	first := enter(t, c, a)
	a.err = errLost
	c.leave(b, enter(t, c, b))
	c.leave(a, first)
	_, ok := c.enter(a, 0)
	require.False(t, ok)
	require.Equal(t, []int{0, 1, 1, 2}, []int{c.double, c.sections, c.value, c.lost})
	require.Empty(t, c.inside)
	require.Len(t, c.waits, 2)
}

func TestVerdict(t *testing.T) {
	good := account{sections: 9, value: 9, guard: true}
	for name, c := range map[string]struct {
		change func(*account)
		says   string
		clean  bool
	}{
		"clean":     {func(*account) {}, "All is well", true},
		"early":     {func(a *account) { a.early = true }, "Stopped early", true},
		"at once":   {func(a *account) { a.early, a.sections, a.value = true, 0, 0 }, "Stopped early", true},
		"nothing":   {func(a *account) { a.sections, a.value = 0, 0 }, "NOTHING SHOWN", false},
		"double":    {func(a *account) { a.double = 1 }, "WRONG: two were inside together.", false},
		"uncounted": {func(a *account) { a.value = 8 }, "WRONG: two were inside together.", false},
		"early too": {func(a *account) { a.double, a.early = 1, true }, "WRONG", false},
		"embedded":  {func(a *account) { a.double, a.embedded = 1, true }, "there is no restart guard", false},
		"unguarded": {func(a *account) { a.double, a.value, a.guard = 3, 7, false }, "3 times somebody came in while another was inside, and 2 of 9", false},
		"by luck":   {func(a *account) { a.guard = false }, "by luck", true},
	} {
		a := good
		c.change(&a)
		require.Contains(t, a.verdict(), c.says, name)
		require.Equal(t, c.clean, a.clean(), name)
	}
}

func TestWaits(t *testing.T) {
	a := &account{}
	for i := range 200 {
		a.waits = append(a.waits, time.Duration(i+1)*time.Millisecond)
	}
	for percent, want := range map[int]string{50: "100ms", 99: "198ms", 100: "200ms"} {
		require.Equal(t, want, a.wait(percent).String())
	}
}

// On a terminal the nodes are drawn again and again in the same lines.
func TestPictureOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newPicture(&out)
	p.terminal = true
	p.show([]standing{{1, "a:1", "vote", "", ""}, {2, "a:2", "no vote", " for another 0.3s", restarted}}, "sum")
	p.show([]standing{{1, "a:1", "away", "", killed}, {2, "a:2", "vote", "", ""}}, "sum")
	require.Equal(t, "\r\x1b[Knode 1  a:1  vote\n\r\x1b[Knode 2  a:2  no vote for another 0.3s (restarted)\n\r\x1b[Ksum\n"+
		"\x1b[3A\r\x1b[Knode 1  a:1  away (killed)\n\r\x1b[Knode 2  a:2  vote\n\r\x1b[Ksum\n", out.String())
}

// Elsewhere there is a line when something has changed but the time that is left.
func TestPictureElsewhere(t *testing.T) {
	var out bytes.Buffer
	p := newPicture(&out)
	p.show([]standing{{1, "a:1", "no vote", " for another 0.3s", ""}}, "sum")
	p.show([]standing{{1, "a:1", "no vote", " for another 0.2s", ""}}, "sum")
	p.show([]standing{{1, "a:1", "vote", "", ""}}, "sum")
	require.Equal(t, "sum: 1 no vote for another 0.3s\nsum: 1 vote\n", out.String())
	p.shown = time.Now().Add(-2 * time.Second)
	p.show([]standing{{1, "a:1", "vote", "", ""}}, "sum")
	require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")))
}
