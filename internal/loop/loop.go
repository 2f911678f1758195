// Package loop has what wakes a loop in the background, and how it pauses.
package loop

import "time"

// Poke wakes the loop that receives from a one-slot channel.
func Poke(poke chan<- struct{}) {
	select {
	case poke <- struct{}{}:
	default:
	}
}

// Sleep returns true after d, or false as soon as woken has something or is closed.
func Sleep(d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-woken:
		return false
	}
}
