// Package holdfast has what all kinds of locks share: the [Lease] that a lock call
// returns, the options of a call, the [Status] of a key, the errors, and [Locker], which
// rlock, fair and multilock satisfy. Code that only locks can take a Locker and does not
// depend on the kind. The package does no I/O.
package holdfast
