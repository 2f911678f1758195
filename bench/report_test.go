package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	w := workload{name: "work", figures: []figure{
		{name: "speed", value: of("a", "speed")},
		{"÷ b", atLeast(0.9), ratio("a", "b", "speed")},
		{"÷ c", atLeast(3), ratio("a", "c", "speed")},
		{"sent", exactly(2), of("a", "sent")},
		{"lost", atMost(0), of("a", "lost")},
	}}
	r := report{Workloads: []measured{{
		workload: w, Name: w.name, Notes: []string{"c failed in round 2: stuck"}, Stolen: 0.123,
		Rounds: []round{
			{"a": {"speed": 12_000, "sent": 2}, "b": {"speed": 12_000}, "c": {"speed": 6_000}},
			{"a": {"speed": 1_800_000, "sent": 2}, "b": {"speed": 2_000_000}},
			{"a": {"speed": 400, "sent": 3}, "b": {"speed": 800}, "c": {"speed": 100}},
		},
	}}}
	require.Equal(t, strings.Join([]string{
		"| work | speed |  | 12.0 k | 400 – 1.80 M |  |",
		"| work | ÷ b | ≥ 0.900 | 0.900 | 0.500 – 1 | ✓ |",
		"| work | ÷ c | ≥ 3 | 3 | 2 – 4 | ✓ |",
		"| work | sent | = 2 | 2 | 2 – 3 | ✓ |",
		"| work | lost | ≤ 0 | – | – | |",
		"", "work: c failed in round 2: stuck", "",
		"work: the machine's host took up to 12 % of the processors' time for others", "",
	}, "\n"), r.Workloads[0].lines()+r.notes())
}

func TestTargets(t *testing.T) {
	require.True(t, atLeast(2).met(2))
	require.False(t, atLeast(2).met(1.99))
	require.True(t, atMost(2).met(2))
	require.False(t, atMost(2).met(2.01))
	require.True(t, exactly(2).met(2))
	require.False(t, exactly(2).met(2.0001))
	require.True(t, target{}.met(0))
}

func TestSent(t *testing.T) {
	c := calls{"evalsha": 10, "exists": 10, "hset": 5, "subscribe": 1, "ping": 4, "info": 1}
	require.Equal(t, 11, c.sent())
	require.Equal(t, 15, c.inner())
}
