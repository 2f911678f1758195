// Package goredisholdfast makes the client of the locks from the options that a program already
// has for go-redis, so that both connect to the same Redis in the same way.
//
// What comes from those options: addresses, database, user, password and credentials
// providers, TLS, Dialer, protocol, client name and identity; DialTimeout up to 2 s, the longer
// of ReadTimeout and WriteTimeout up to 3 s, and ClusterStateReloadInterval up to 5 s, as the
// renewal of a lease must not wait for longer. With a Dialer that makes TLS, also set TLSConfig
// on a Redis Cluster with ports of both kinds: it says which of them the servers are asked for.
// A StreamingCredentialsProvider is asked without a timeout.
//
// Options without meaning for locks are ignored:
//   - MaxRetries, MaxRedirects, DialerRetries and what belongs to them: go-redis repeats any
//     command whose reply was lost. This client repeats none; the lockers do, where it is safe.
//   - Pools, their sizes and the lifetimes of their connections: the locks share one connection.
//   - Buffers and AutoPipelineOptions: commands of locks are short.
//   - ReadOnly, RouteByLatency, RouteRandomly, ShardPicker, DisableRoutingPolicies,
//     UseDisconnectedReplicas, FailingTimeoutSeconds: all calls go to masters.
//   - Client-side caches: locks never read from one.
//   - MaintNotificationsConfig, NodeAddress and PushNotificationProcessor: when a server goes away,
//     the client reconnects, and leases live on meanwhile.
//   - ContextTimeoutEnabled: calls always heed their contexts.
//   - UnstableResp3: it has no effect in go-redis, either.
//
// Options that would make a different client from the program's are refused: OnConnect,
// Limiter, ReplicaOnly, and NewClient and ClusterSlots of ClusterOptions.
package goredisholdfast
