package exclusion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExclusionChecker(t *testing.T) {
	at := func(key, id string, from, to time.Duration, fence int64) Interval {
		return Interval{key: key, id: id, from: from, to: to, fence: fence}
	}
	reader := func(id string, from, to time.Duration, fence int64) Interval {
		return Interval{key: "k", id: id, reads: true, from: from, to: to, fence: fence}
	}
	cases := []struct {
		name               string
		all                []Interval
		overlaps, disorder int
	}{
		{"nothing", nil, 0, 0},
		{"one after the other, in any order of reports", []Interval{at("k", "b", 20, 30, 2), at("k", "a", 10, 20, 1)}, 0, 0},
		{"different keys", []Interval{at("k", "a", 10, 30, 5), at("l", "b", 20, 40, 5)}, 0, 0},
		{"overlap by a nanosecond", []Interval{at("k", "a", 10, 21, 1), at("k", "b", 20, 30, 2)}, 1, 0},
		{"one inside another", []Interval{at("k", "a", 10, 90, 1), at("k", "b", 20, 30, 2)}, 1, 0},
		{"one long lease over several", []Interval{
			at("k", "a", 10, 90, 1), at("k", "b", 20, 30, 2), at("k", "c", 40, 50, 3), at("k", "d", 90, 95, 4),
		}, 2, 0},
		{"begun at the same instant", []Interval{at("k", "a", 10, 20, 1), at("k", "b", 10, 20, 2)}, 1, 0},
		{"over before it began", []Interval{at("k", "a", 10, 40, 2), at("k", "b", 20, 20, 1), at("k", "c", 30, 25, 1)}, 0, 0},
		{"a fence falls", []Interval{at("k", "a", 10, 20, 2), at("k", "b", 20, 30, 1)}, 0, 1},
		{"a fence repeats, not next to the first", []Interval{
			at("k", "a", 10, 20, 7), at("k", "b", 20, 30, 3), at("k", "c", 30, 40, 7), at("k", "d", 40, 50, 8),
		}, 0, 2},
		{"readers between writers", []Interval{
			at("k", "a", 10, 20, 1), reader("b", 20, 40, 3), reader("c", 30, 60, 2), reader("d", 50, 60, 2), at("k", "e", 60, 70, 4),
		}, 0, 0},
		{"a writer beside a reader", []Interval{reader("a", 10, 21, 1), at("k", "b", 20, 30, 2)}, 1, 0},
		{"a reader beside a writer", []Interval{at("k", "a", 10, 21, 1), reader("b", 20, 30, 2)}, 1, 0},
		{"a writer beside several readers", []Interval{reader("a", 10, 50, 1), reader("b", 10, 50, 1), at("k", "c", 20, 30, 2)}, 2, 0},
		{"a reader has a writer's fence", []Interval{at("k", "a", 10, 20, 2), reader("b", 20, 30, 2)}, 0, 1},
		{"a writer has a reader's fence", []Interval{reader("a", 10, 20, 3), reader("b", 20, 30, 2), at("k", "c", 30, 40, 3)}, 0, 1},
		{"no fences", []Interval{at("k", "a", 10, 20, 0), at("k", "b", 20, 30, 0)}, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := Check(c.all)
			require.Len(t, b.Overlaps, c.overlaps)
			require.Len(t, b.Disorder, c.disorder)
		})
	}
}

// Two holds at once count apart if a failover came between their grants and one ended in
// time. Fences have to grow all the same, but for those that were asked for at once.
func TestExclusionOverAFailover(t *testing.T) {
	failover := Failover{keys: map[string]bool{"k": true}, from: 100, to: 200, told: 500}
	lease := func(owner string, called, from, to time.Duration, fence int64) Interval {
		return Interval{"k", owner, owner, false, called, from, to, to, fence, false}
	}
	ahead := func(i Interval) Interval { i.ahead = true; return i }
	renewed := func(i Interval) Interval { i.until = 501; return i }
	elsewhere := func(all ...Interval) []Interval {
		for i := range all {
			all[i].key = "l"
		}
		return all
	}
	cases := map[string]struct {
		all                           []Interval
		overlaps, disorder, explained int
	}{
		"the first is lost":            {[]Interval{lease("a", 10, 20, 400, 1), lease("b", 150, 160, 190, 2)}, 0, 0, 1},
		"told as late as may be":       {[]Interval{lease("a", 10, 20, 500, 1), lease("b", 150, 160, 900, 2)}, 0, 0, 1},
		"not told":                     {[]Interval{lease("a", 10, 20, 501, 1), lease("b", 150, 160, 900, 2)}, 1, 0, 0},
		"not told, and unlocked":       {[]Interval{renewed(lease("a", 10, 20, 400, 1)), renewed(lease("b", 150, 160, 490, 2))}, 1, 0, 0},
		"before the failover":          {[]Interval{lease("a", 10, 20, 400, 1), lease("b", 80, 90, 95, 2)}, 1, 0, 0},
		"after the failover":           {[]Interval{lease("a", 210, 220, 400, 1), lease("b", 220, 230, 240, 2)}, 1, 0, 0},
		"of another key":               {elsewhere(lease("a", 10, 20, 400, 1), lease("b", 150, 160, 190, 2)), 1, 0, 0},
		"of one hold":                  {[]Interval{lease("a", 10, 20, 400, 1), lease("a", 150, 160, 190, 2)}, 1, 0, 0},
		"of two holds beside a third":  {[]Interval{lease("a", 10, 20, 400, 1), lease("b", 210, 220, 300, 2), lease("c", 230, 240, 250, 3)}, 1, 0, 2},
		"handed over, with an old one": {[]Interval{lease("a", 10, 20, 300, 1), lease("b", 150, 160, 190, 5), lease("a", 200, 310, 350, 2)}, 0, 0, 1},
		"fences fall":                  {[]Interval{lease("a", 10, 20, 90, 7), lease("b", 150, 160, 190, 2)}, 0, 1, 0},
		"fences fall to the clock":     {[]Interval{ahead(lease("a", 10, 20, 90, 7)), lease("b", 150, 160, 190, 2)}, 0, 0, 0},
		"fences fall before":           {[]Interval{ahead(lease("a", 10, 20, 30, 7)), lease("b", 50, 60, 90, 2)}, 0, 1, 0},
		"fences fall afterwards":       {[]Interval{ahead(lease("a", 210, 220, 230, 7)), lease("b", 250, 260, 290, 2)}, 0, 1, 0},
		"fences fall long afterwards":  {[]Interval{ahead(lease("a", 10, 20, 90, 7)), lease("b", 590, 600, 690, 2)}, 0, 1, 0},
		"fences fall with a lost hold": {[]Interval{lease("a", 10, 20, 400, 7), lease("b", 150, 160, 190, 2)}, 0, 1, 1},
		"both at once":                 {[]Interval{lease("a", 105, 120, 400, 7), lease("b", 110, 130, 140, 2)}, 0, 0, 1},
		"not above an earlier one": {
			[]Interval{lease("z", 1, 5, 9, 5), lease("a", 105, 120, 400, 7), lease("b", 110, 130, 140, 2)}, 0, 1, 1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := Check(c.all, failover)
			require.Len(t, b.Overlaps, c.overlaps)
			require.Len(t, b.Disorder, c.disorder)
			require.Equal(t, c.explained, b.Explained)
		})
	}
}

// A lease whose process was killed ends with the process, or with the last
// deadline that it told of.
func TestExclusionRecords(t *testing.T) {
	log := "G 0-a k o false 1 true 90 100 400\nD 0-a 500\nE 0-a 450\n" +
		"G 1-a k p true 2 false 550 600 900\n" + // killed at 700
		"G 2-a l q false 3 false 590 600 900\nD 2-a 950\n" + // killed at 2000, as it stood still
		"G 3-a l r false 4 false 990 1000 1300\nE 3-a 1300\nL 3-a fixed\n"
	run, err := ReadRecords([]byte(log), map[string]time.Duration{"1": 700, "2": 2000}, true)
	require.NoError(t, err)
	require.ElementsMatch(t, []Interval{
		{"k", "0-a", "o", false, 90, 100, 450, 500, 1, true}, {"k", "1-a", "p", true, 550, 600, 700, 900, 2, false},
		{"l", "2-a", "q", false, 590, 600, 950, 950, 3, false}, {"l", "3-a", "r", false, 990, 1000, 1300, 1300, 4, false},
	}, run.Intervals)
	require.Equal(t, 2, run.Killed)
	require.Equal(t, 8, run.Operations)
	require.Equal(t, map[string]int{"fixed": 1}, run.Losses)

	run, err = ReadRecords([]byte(log+"G 4-a k s false 5 false 1400 1400 1500\nG 5-a m t false 6 false 14"), map[string]time.Duration{"1": 700, "2": 2000}, false)
	require.NoError(t, err)
	require.Len(t, run.Intervals, 4, "those that live, and are written, do not count yet")

	for _, bad := range []string{"G 0-a k o false 1 false 90 100", "E 0-b 100", "D 0-b 100", "X", "G 0-a k o false 1 false 90 100 x", "G 0-a k o false 1 x 90 100 400", "G 0-a k o x 1 false 90 100 400", "G 9-a k o false 1 false 90 100 200", "L 0-a"} {
		_, err := ReadRecords([]byte(bad+"\n"), nil, true)
		require.Error(t, err, bad)
	}
}
