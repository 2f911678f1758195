//go:build race

package model

// Race: the race detector is on, under which a search takes ten times as long and
// learns nothing.
const Race = true
