//go:build race

package multilock_test

// modelRace: the race detector is on, under which a search takes ten times as long
// and learns nothing.
const modelRace = true
