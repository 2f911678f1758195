package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// servedIn reads the order of service.
func servedIn(t *testing.T, stdout string) (list []int) {
	t.Helper()
	m := regexp.MustCompile(`In the order of service: (.*)`).FindStringSubmatch(stdout)
	require.NotNil(t, m, stdout)
	require.NoError(t, json.Unmarshal([]byte(m[1]), &list))
	return list
}

func TestG8_ServedInTheOrderOfArrivalWhoeverDies(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		requireOrder(t)
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, "--requirepass", "open-sesame")
		requireOrder(t, "-redis", "redis://default:open-sesame@"+s.Addr()+"/3")
		require.NotContains(t, redistest.Must(s.Do(t, "INFO", "keyspace").ToString())(t), "db", "keys are left, of the dead too")
	})
}

// requireOrder judges the list itself, not what the program says of it.
func requireOrder(t *testing.T, args ...string) {
	stdout := demotest.Succeeds(t, append(args, "-customers", "60", "-lease", "15s")...)
	require.NotContains(t, stdout, "open-sesame")
	list := servedIn(t, stdout)
	require.True(t, slices.IsSorted(list), stdout)
	require.Len(t, slices.Compact(slices.Clone(list)), len(list), "one was served twice: %v", list)
	of := [4]int{}
	for _, n := range list {
		of[(n-1)%4]++
	}
	require.Equal(t, []int{15, 15}, of[2:], "of the processes that live: %v", list)
	require.Less(t, of[0], 15, "process 1 died in the queue: %v", list)
	require.Less(t, of[1], 15, "process 2 died at the counter: %v", list)
	require.Contains(t, stdout, "Process 1 was killed.\nProcess 2 was killed.\n")
}

// What the fair lock is for.
func TestUnfairLockIsCaught(t *testing.T) {
	stdout := demotest.Fails(t, 1, `WRONG: [1-9]\d* customers were overtaken, 0 served twice, 0 lost`, "-fair=false", "-kill=false")
	list := servedIn(t, stdout)
	require.False(t, slices.IsSorted(list), stdout)
	require.Len(t, list, 100)
}

func TestJudge(t *testing.T) {
	defer func(n int) { *customers = n }(*customers)
	*customers = 4
	for name, c := range map[string]struct {
		served []int
		died   int // process
		early  bool
		says   string
	}{
		"in order":         {[]int{1, 2, 3, 4}, 0, false, ""},
		"overtaken":        {[]int{2, 3, 1, 4}, 0, false, "1 customers were overtaken, 0 served twice, 0 lost"},
		"lost":             {[]int{1, 2, 4}, 0, false, "0 customers were overtaken, 0 served twice, 1 lost"},
		"twice":            {[]int{1, 2, 3, 3, 4}, 0, false, "0 customers were overtaken, 1 served twice, 0 lost"},
		"one of none":      {[]int{1, 2, 3, 4, 5}, 0, false, "1 served twice"},
		"dead":             {[]int{1, 2, 4}, 3, false, ""},
		"dead, and a loss": {[]int{1, 4}, 3, false, "1 lost"},
		"stopped early":    {[]int{1, 2}, 0, true, ""},
		"early, overtaken": {[]int{2, 1}, 0, true, "1 customers were overtaken"},
	} {
		t.Run(name, func(t *testing.T) {
			died := make([]bool, *processes+1)
			died[c.died] = true
			err := judge(c.served, died, c.early)
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}

func TestRedisDies(t *testing.T) {
	demotest.RedisDies(t, "customers come", "-customers", "4000", "-lease", "500ms")
}

func TestBadInput(t *testing.T) {
	for _, args := range [][]string{{"-customers", "0"}, {"-customers", "3"}, {"-processes", "2"}} {
		demotest.Fails(t, 1, "at least", args...)
	}
}
