// Package pubsub listens to any number of Redis channels, on one connection for each node, and says what it has missed.
//
//	s := pubsub.New(client, nil)               // a rueidis.Client, shared with the caller; no I/O yet
//	defer s.Close()
//	sub := s.Subscribe("news")              // never blocks, never fails
//	defer sub.Close()
//	for range sub.Wake() {                  // something changed:
//		st := sub.State()                   // confirmed? connection lost? how many messages?
//	}
//
// # What is authoritative
//
// Redis' keys are; messages are hints. Redis keeps no message for an absent listener. So a listener that waits for a
// change of a key subscribes, waits for the confirmation, looks at the key, and only then sleeps, at most until it must
// look at the key anyway. A lost message then costs latency, never correctness. This package makes the loss visible: each
// confirmation begins a new epoch, and a listener that sees a new [State.Epoch] looks again.
//
// Within an epoch nothing is lost: a message published after [State.Live] was seen true is counted in [State.Messages]
// and wakes the listener, or the loss of the connection wakes it. Wake-ups coalesce, counts do not. Messages are not
// kept: [Subscriber.SubscribeFunc] hands over their text as it comes.
//
// # States of a channel
//
//	          Subscribe                 acknowledged
//	absent ─────────────▶ joining ─────────────────────▶ joined (Live, Epoch + 1)
//	  ▲ ▲                    │ NOPERM                        │ last Close, or moved
//	  │ └────── refused ◀────┘                               ▼
//	  └─────────────────────────────────────────────────── leaving
//	                 acknowledged
//
// On a new connection a channel is joined before it is live, see "A connection at another server". The loss of the
// connection takes every channel to absent. On a Cluster a channel may also go astray, see below.
//
// A channel has at most one command under way, so an acknowledgement always belongs to the last command, however fast
// listeners come and go.
//
// # Redis Cluster
//
// A Subscriber of [NewCluster] has a connection to each master that it needs, with a loop and a queue of its own, so that
// a master that hangs delays the channels of no other. A channel is subscribed on the master of its slot, the one on which the locks'
// scripts publish, so that PUBLISH and SPUBLISH count its listener. With shard channels each SSUBSCRIBE is a command of its
// own, as their slots differ.
//
// One goroutine, route, knows where channels belong, from a [cluster.Map]. It asks the Cluster again (CLUSTER SLOTS)
//   - when a channel goes astray: the server ends a shard subscription as its slot moves away, or answers SSUBSCRIBE with
//     MOVED or CLUSTERDOWN;
//   - when a connection is lost;
//   - again after up to 1 ms, doubled up to 300 ms, while a channel has no node or no connection there: so listeners
//     follow a failover that soon after it;
//   - after up to 1 s, doubled up to 10 s, while all is well: a master that is paused, or cut off from the other nodes,
//     loses its slots silently, and nobody ends a classic subscription.
//
// To move a channel is to subscribe it at its new master and to hand its listeners over. They are woken, are not live until
// the new master confirms, and then see a new epoch. The old subscription is dropped when the old master answers, if ever.
//
// While a slot migrates, scripts run on its new master as soon as the key has moved, and Redis keeps shard channels on the
// old one until all keys have. A message of that time reaches nobody. The end of the migration wakes the listeners. (A
// classic message reaches them immediately, as it goes to all nodes.)
//
// A master that the client does not know yet is introduced to it by an EXISTS of one of the channels, which is answered
// MOVED.
//
// # The goroutines
//
// Subscribe and Close change the set of wanted channels under a mutex and poke the loop of the channel's node, the one
// goroutine that sends commands to it: all changes that came during one round trip go out together, up to 200 channels at
// a time. A second goroutine, one for each connection, opens and closes it, as rueidis can do neither under a deadline; the
// loop waits for its end before it dials again. Acknowledgements and messages arrive on the reader of the connection, which
// only counts and wakes. A Subscriber on which nobody listens sends nothing, but for route's CLUSTER SLOTS every 5–10 s;
// rueidis itself pings each idle connection once per Dialer.KeepAlive (1 s by default). The loop and the connection of a
// node end when it is no longer a master.
//
// # A connection at another server
//
// The calls of a client may follow a name, a proxy or a Sentinel to another server, while the connection of the subscriptions
// stays where it is, perhaps on a replica. There it is deaf: PUBLISH does not count it, and a server that is not a replica
// sends it nothing. So while somebody listens, a third goroutine asks once a second, on the connection of the client's calls,
// how many listen to a channel that only this connection has (PUBSUB NUMSUB), however many channels there are. If nobody
// listens, the connection is replaced, and listeners look again. The channel is in the first SUBSCRIBE of the connection:
// where it is, the others have been subscribed. It is dropped within about a second after all others.
//
// A new connection is asked for immediately, and its channels are joined, but not live, until the answer is good. That costs
// the first listeners of a connection one round trip. Whoever looks at every new epoch misses nothing that was published
// before. A connection that is deaf from the start is kept for a second or two, each next one for twice as long, up to 30 s: it
// becomes live if the calls follow it. Until then its listeners look at their keys in time. Those on a replica are still woken,
// as Redis passes messages on to replicas.
//
// If the user is not allowed to ask, or the question is refused otherwise for a second or two, channels are live anyway, and a
// deaf connection stays until it is lost. The log says so once. The question is put again, to such a user after 30 s, unless
// the channels are allowed one by one. After any other failure it is put again after up to 1 s, and channels are not live
// before the answer.
//
// On a Cluster nobody asks: its servers know each other, and route moves the channels.
//
// # Failures
//
//   - Connection lost (server restarted, CLIENT KILL, slow listener dropped by client-output-buffer-limit): all live
//     listeners are woken immediately and find Live false. The loop connects again, immediately if the connection had lasted
//     for 100 ms, otherwise after up to 1 ms, doubled up to 1 s, with jitter, and subscribes all wanted channels.
//   - Server unreachable: a connection that nobody accepts costs the server nothing, so the next one is tried after a
//     sixteenth of the time since it went away, at most after 50 ms.
//   - Server loads its data: it would accept subscriptions, but serves nobody. Channels are subscribed when it has loaded;
//     the loop asks for that (PING) as often as above.
//   - The client's calls go to another server, after a Sentinel's failover, say: the connection is replaced within about a
//     second, while somebody listens, also where the old server lives on.
//   - No dedicated connection free, as the program uses all BlockingPoolSize of them: the log says so once; listeners
//     are served when one is free. Close does not wait for it.
//   - Server silent (paused, half-open connection): if a command is not answered within 2 s, the connection is given
//     up. Without commands rueidis' ping notices after Dialer.KeepAlive + ConnWriteTimeout (11 s by default, never if
//     KeepAlive is negative). Then as above.
//   - Refused for good (wrong password, user without the right, client closed): a connection is tried again after 2.5–5 s.
//     If the server has accepted one before, a password is being changed, and the next is tried as after any loss.
//     A channel that the user has no right to hear does not keep the others from being subscribed and is asked for again
//     after 2.5–5 s. Its listeners never become live while that lasts.
//   - Server answers BUSY while a script blocks it: commands are repeated after up to 1 ms, doubled up to 1 s; live channels
//     stay live. While it does not even answer that (busy-reply-threshold, 5 s by default) it counts as silent. With a
//     threshold below 4 s rueidis v1.0.79 may panic when a script begins to block within the round trip before an
//     UNSUBSCRIBE, and likewise when the server begins to answer MISCONF or MASTERDOWN then.
//   - Server answers MISCONF (its disk fails) or MASTERDOWN: channels are subscribed as ever; none is unsubscribed until
//     that is over.
//   - UNSUBSCRIBE refused (a user without that right): the connection is replaced, so that the channel is really dropped.
//   - The Cluster is down (CLUSTERDOWN): live channels stay live. Shard channels are subscribed and unsubscribed when it is up
//     again, unless cluster-allow-pubsubshard-when-down lets them be (the default); the others are as ever.
//
// None of this reaches a caller as an error: a listener that is not live falls back to looking at its key in time.
// The logger of [New] informs the operator.
package pubsub
