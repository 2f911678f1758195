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
// and for those who wait in order:
//
//	redisson_lock_queue:{key}                 list       the owners that wait, the next one first
//	redisson_lock_timeout:{key}               sorted set owner -> epoch ms: when Java counts it as dead
//	holdfast_heartbeat:{key}                       hash       client -> epoch ms: until when it counts as alive; mute client -> until when it does not hear; java -> whose turn it is
//	redisson_lock__channel:{key}:client-uuid  channel    a client's inbox: what was granted to its owners, with the key's name
//	redisson_lock__channel:{key}:owner        channel    the message 0: it is this owner's turn; how Java wakes
//
// A key is free when its hash is absent. An owner is client-uuid:number. A hash with
// another field, or with more than one, is no lock but somebody's data: acquires,
// looks and ForceRelease refuse it, and nothing here changes it. So it is with
// Redisson's read/write locks, which have a field mode. The braces are left out where the key
// has an opening brace of its own. List and sorted set name the same owners and
// vanish with the last of them; the heartbeats expire.
//
// # The verbs
//
// Each is one Lua file, which begins with its contract: what it does, KEYS, ARGV,
// every reply.
//
//	Acquire        free -> held by the owner, one entry, for one lease
//	AcquireFenced  the same, with fence numbers that only grow
//	AcquireAll     several, all free -> each held by its owner; or none
//	Recount        held by the owner -> the same with another number of entries
//	Renew          held by the owner -> the same for one lease from now; many keys at once
//	Release        held by the owner -> free; tells the channel
//	CleanUp        as Release, and for a minute every acquire of that owner fails
//	ForceRelease   held by anybody -> free; tells the channel
//	Inspect        who holds the key
//
// AcquireEach and ReleaseEach are for several keys, each by itself.
//
// A verb that finds another holder changes nothing. An owner acquires once in its
// life: it is never used again after its release.
//
// Those of [Fair] serve who waits in the order of a queue. They are put together
// of parts, see node.go: what all share is in fair.lua, how the next is chosen in
// fair_serve.lua:
//
//	Acquire        free, and nobody waits -> held by the owner
//	Enter          the owner waits, behind all others
//	Release        held by the owner -> held by the next who lives, who is told
//	Leave          waits, or holds -> neither, and the next is served; may leave a tombstone
//	Confirm        held by the owner, as it was granted -> for the lease that it wants
//	Heartbeat           the client's owners keep their places; a free key is given to the next; many keys at once
//	ForceRelease   held by anybody -> held by the next
//	Inspect        who holds the key, and how many wait
//
// Here, too, AcquireEach and ReleaseEach are for several keys. An owner enters once in its life, too. Renew and Recount are for both kinds.
//
// # Three outcomes
//
// A call is done, surely not done, or its outcome is unknown; [OutcomeOf] decides
// which, and divides the second into what waiting may cure and what it cannot.
// "Surely not done" can be told because every script checks its arguments, and
// meets what Redis may refuse, before its first write or undoes that write. So a
// lock never stays without an expiry, unless a user lacks the rights to both
// PEXPIRE and HDEL. What gives up a hold or a place, and Heartbeat, do their work and
// then serve the next as far as Redis lets them; what it refuses there the next
// look finds out.
//
// # Repetition
//
// A call whose reply was lost may be sent again: an acquire finds its own field
// and changes nothing, a release finds none, a count is set and not added to. What
// a repeated call learns is weaker in two places: an acquire may have begun with
// the first attempt, and a release that finds nothing may itself have released.
// ForceRelease is the exception: its repeat may hit the next holder. An owner
// that enters again keeps its place; a grant that was lost with the reply is found
// by Heartbeat.
//
// An attempt that is still on its way cannot be called back. CleanUp makes it
// harmless for a minute: whichever comes second, the late acquire or the
// clean-up, finds what the first has left. Where Redis cannot take the tombstone
// (out of memory, say), and after that minute, what arrives late is a hold of
// nobody, for at most its lease.
package scripts
