package redistest

import "sync/atomic"

// When is a hook that asks for a verdict on the commands that match, and lets all others pass.
func When(match func(cmd []string) bool, verdict func() Verdict) Hook {
	return func(cmd []string) Verdict {
		if match(cmd) {
			return verdict()
		}
		return Pass
	}
}

// Always is a hook that has one verdict on the commands that match.
func Always(match func(cmd []string) bool, v Verdict) Hook {
	return When(match, func() Verdict { return v })
}

// Seeing is a hook that lets all commands pass, and tells of those that match.
func Seeing(match func(cmd []string) bool, tell func()) Hook {
	return When(match, func() Verdict { tell(); return Pass })
}

// Once sets a hook that has a verdict on the next command that matches. The channel is closed then.
func Once(set func(Hook), match func(cmd []string) bool, v Verdict) <-chan struct{} {
	done := make(chan struct{})
	var seen atomic.Bool
	set(When(match, func() Verdict {
		if seen.Swap(true) {
			return Pass
		}
		set(nil)
		close(done)
		return v
	}))
	return done
}
