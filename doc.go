// Package holdfast has what all kinds of locks share: the [Lease] that a lock call
// returns, the options of a locker and of a call, the [Status] of a key, the errors, and
// [Locker] and [Operator], the interfaces of rlock, fair and multilock. Code that takes a Locker works with every kind,
// and its tests with the double of package holdfasttest.
// The package does no I/O.
package holdfast
