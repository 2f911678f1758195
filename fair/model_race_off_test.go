//go:build !race

package fair_test

// modelRace: the race detector is on.
const modelRace = false
