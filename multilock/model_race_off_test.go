//go:build !race

package multilock_test

// modelRace: the race detector is on.
const modelRace = false
