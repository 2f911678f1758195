//go:build !race

package model

// Race: the race detector is on.
const Race = false
