// Package holdfast contains what all lock kinds share: the [Lease] that a lock call returns,
// the options of a locker and of a call, the [Status] of a key, the errors, and the interfaces
// [Locker] and [Operator]. Code that takes a Locker works with the locks of rlock, fair,
// rwlock and multilock and the permits of semaphore, and its tests can use the doubles of
// package holdfasttest. The package does no I/O.
//
// # For authors of a Locker
//
// [Entry], [NewLease], [LockOptions], [NewLockOptions] and [Settings] serve those who implement a
// Locker. Programs that lock do not need them.
package holdfast
