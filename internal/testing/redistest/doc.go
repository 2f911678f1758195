// Package redistest runs real Redis servers for tests and puts a proxy with
// faults between them and their clients. It is for tests, and for bench.
//
// # Servers
//
// [Start] runs a redis-server on a free loopback port in a directory of its own
// and stops it with the test. Any configuration is given as arguments, as on
// the command line:
//
//	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
//	c := s.Client(t)                     // a rueidis client, closed with the test
//	s.Do(t, "SET", "k", "v")             // a command as administrator
//	s.Pause(); s.Resume()                // the machine stands still
//	s.Kill(); s.Restart()                // the process dies and comes back
//
// [StartSentinel] runs a master with replicas and the Sentinels that watch it, and
// [StartSentinels] Sentinels for many masters that do not fail.
//
// [StartCluster] runs a Redis Cluster of them. A test can move its slots, and make its masters fail
// over or die.
//
// [StartTLS] runs a server that also speaks TLS, with a certificate of a [CA] that the test
// makes.
//
// # The proxy
//
// [NewProxy] forwards connections to a server. In each direction of each connection every request,
// reply or push takes the same path:
//
//	arrives → hook → delay → hold → forwarded
//
// It is read as soon as it arrives, whatever waits before it, so a delay does not
// lower the throughput; it is forwarded after all that came before it, so no
// fault changes the order. What a hook decides is thus known when a request
// reaches the proxy and when a reply leaves the server:
//
//	p := redistest.NewProxy(t, s.Addr())
//	p.SetDelay(time.Millisecond, time.Millisecond)       // a slow network
//	p.HoldReplies(true)                                  // one direction is lost
//	p.Refuse(true); p.Cut()                              // an outage
//	lost := p.SwallowReply(1, func(cmd []string) bool {  // carried out, but not answered
//		return cmd[0] == "EVALSHA"
//	})
//	p.OnRequest(func(cmd []string) redistest.Verdict {   // any step of any call
//		…
//	})
//
// A reply is never removed from the stream alone, since all later ones would then look like answers
// to the wrong requests: what swallows a reply also ends the direction ([Drop]) or the connection
// ([Cut]).
package redistest
