// Package scripts has the Lua scripts of all locks, the names of their channels, and the commands that a
// Redis user must be allowed. The layout in Redis is Redisson's, so that Java programs share the locks.
// Locks call the scripts by package internal/wire.
//
// The names of keys and channels, with what they hold, are stable. The text of a script may change with
// any release.
//
// # What is in Redis
//
// CHANGELOG.md has the table of all keys and channels, in its section "On the wire".
//
// A lock is free when its hash is absent; of a read/write lock and of a semaphore, holds that have ended do
// not count. An owner is client-uuid:number. A hash with another field, or with more than one,
// is somebody's data, or a read/write lock, which has a field mode: acquires, heartbeats, Inspect and
// ForceRelease refuse it, and nothing here changes it. The scripts of read/write locks refuse a lock in the
// same way.
// The list and the sorted set of a queue name the same owners and vanish with the last of them.
//
// # The scripts
//
// Each is one Lua file in the folder plain, fair, semaphore, rwlock or quorum, which begins with its
// contract: what it does, KEYS, ARGV, every reply, whether it may be repeated. It reads
// from top to bottom. In it, a lock is what Go calls a key. A line "--@include parts/holder.lua" stands
// for the text of that file; the folder parts holds what several scripts share. acquire_each and similar
// scripts have no files: they do with each of many locks what acquire does with one. "go run
// ./hack/printscript fair_release" prints a script as Redis runs it.
package scripts
