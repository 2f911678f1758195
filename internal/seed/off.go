//go:build !seeded

// Package seed plants known mistakes, one at a time, so that the controls of the chaos
// campaign can show that it finds them. Only tests built with the tag "seeded" have them:
// elsewhere these are constants, and the compiler removes the code behind them.
package seed

const (
	TrustFromReply = false // a lease counts from the reply, and not from the start of the call
	OneRenews      = false // one node decides a renewal
	SmallQuorum    = false // a minority makes a quorum
	NoTombstones   = false // an owner that is given up leaves no tombstone
)
