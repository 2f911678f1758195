// Package scripts is all that is said between a lock and Redis: the Lua scripts,
// the names of keys and channels, and a typed call for each script. Nothing
// outside it sees KEYS, ARGV or a raw reply. The layout is Redisson's, so that
// Java programs share the locks.
//
// # What is in Redis
//
//	key                            hash    owner -> entries; its expiry is the lease
//	redisson_lock_token:{key}      string  the last fence number reserved
//	holdfast_gone:{key}:owner      string  a tombstone: this owner was given up; one minute
//	redisson_lock__channel:{key}   channel the message 0: the key was released
//
// A key is free when its hash is absent. The braces are left out where the key
// has an opening brace of its own.
//
// # The verbs
//
// Each is one Lua file, which begins with its contract: what it does, KEYS, ARGV,
// every reply.
//
//	Acquire        free -> held by the owner, one entry, for one lease
//	AcquireFenced  the same, with fence numbers that only grow
//	Recount        held by the owner -> the same with another number of entries
//	Renew          held by the owner -> the same for one lease from now; many keys at once
//	Release        held by the owner -> free; tells the channel
//	CleanUp        as Release, and for a minute every acquire of that owner fails
//	ForceRelease   held by anybody -> free; tells the channel
//	Inspect        who holds the key
//
// A verb that finds another holder changes nothing. An owner acquires once in its
// life: it is never used again after its release.
//
// # Three outcomes
//
// A call is done, surely not done, or its outcome is unknown; [OutcomeOf] decides
// which, and divides the second into what waiting may cure and what it cannot.
// "Surely not done" can be told because every script checks its arguments, and
// meets what Redis may refuse, before its first write or undoes that write. So a
// lock never stays without an expiry, unless a user lacks the rights to both
// PEXPIRE and HDEL.
//
// # Repetition
//
// A call whose reply was lost may be sent again: an acquire finds its own field
// and changes nothing, a release finds none, a count is set and not added to. What
// a repeated call learns is weaker in two places: an acquire may have begun with
// the first attempt, and a release that finds nothing may itself have released.
// ForceRelease is the exception: its repeat may hit the next holder.
//
// An attempt that is still on its way cannot be called back. CleanUp makes it
// harmless for a minute: whichever comes second, the late acquire or the
// clean-up, finds what the first has left. Where Redis cannot take the tombstone
// (out of memory, say), and after that minute, what arrives late is a hold of
// nobody, for at most its lease.
package scripts
