// Package valkeyholdfast makes the client of the locks from the options that a program already
// has for valkey-go, so that both connect to the same servers in the same way.
//
// What comes from those options: addresses, Sentinel, database, user, password and
// AuthCredentialsFn, TLS, dialers, protocol, client name and info, ShuffleInit,
// ForceSingleClient, ClientNoEvict and how a Redis Cluster is asked for its slots;
// Dialer.Timeout up to 2 s, ConnWriteTimeout up to 3 s, and the two intervals of refreshes up to
// 5 s, as the renewal of a lease must not wait for longer. A negative Dialer.KeepAlive counts as
// none: a client that never asks whether a connection lives finds a silent one too late.
//
// Options without meaning for locks are ignored:
//   - RetryDelay and DisableRetry: this client repeats nothing; the lockers do, where it is safe.
//   - ConnLifetime: a connection whose time has run out makes the client repeat calls whose
//     reply is unknown, and not all calls of locks may be repeated.
//   - Client-side caches: locks never read from one.
//   - SendToReplicas, ReplicaAddress and what belongs to them: all calls go to masters.
//   - Pools, pipelining and buffers: the locks share one connection, on which their calls stay
//     in order, and commands of locks are short.
//   - ClientNoTouch: where keys may be evicted, a lock must look used.
//   - MaxMovedRedirections: a call follows the slots until its time has run out.
//
// ReplicaOnly and Standalone.EnableRedirect are refused.
package valkeyholdfast
