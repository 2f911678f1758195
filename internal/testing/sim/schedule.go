package sim

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// FaultKind is a kind of fault.
type FaultKind string

// The mishaps of links, of all links of a process, and of servers.
const (
	Cut          FaultKind = "cut"             // connections are closed; what is under way is lost
	LoseReply    FaultKind = "reply lost"      // cut between execution and reply
	HoldRequests FaultKind = "requests held"   // they arrive when it is over, also those of a client that has left
	HoldReplies  FaultKind = "replies held"    // likewise
	Straggle     FaultKind = "requests late"   // those of connections in use arrive when it is over; new connections work
	SlowReplies  FaultKind = "replies late"    // each takes a quarter of its length longer
	Fade         FaultKind = "link fades"      // replies are late by a sixth of its length; after that sixth, requests are held
	Unreachable  FaultKind = "unreachable"     // cut, and new connections are refused
	Partition    FaultKind = "partition"       // all links of the process hold everything
	Pause        FaultKind = "server pauses"   // it stands still
	Reboot       FaultKind = "server restarts" // with its memory
	Refusal      FaultKind = "server refuses"  // LOADING and the like
	OutOfMemory  FaultKind = "out of memory"
	LoseScripts  FaultKind = "scripts lost"
	LoseMemory   FaultKind = "memory lost" // a restart, or FLUSHALL
	ClockJump    FaultKind = "clock jumps" // ahead by up to three leases, on the first server
)

// OfLinks and OfServers are those that no lock kind on one Redis may mind.
var (
	OfLinks   = []FaultKind{Cut, LoseReply, HoldRequests, HoldReplies, Straggle, SlowReplies, Fade, Unreachable, Partition}
	OfServers = []FaultKind{Pause, Reboot, Refusal, OutOfMemory, LoseScripts}
)

// Fault is one mishap.
type Fault struct {
	At      time.Duration // since the beginning
	For     time.Duration
	What    FaultKind
	Process int // whose link; of a mishap of servers, of no meaning
	Server  int
	Detail  int // which of the texts, and so on
}

func (f Fault) String() string {
	return fmt.Sprintf("%v for %v: %s, process %d, server %d", f.At, f.For, f.What, f.Process, f.Server)
}

// Schedule is the faults of some time, one each pause on average, most of them much shorter than
// the longest. The same arguments give the same faults.
func Schedule(seed uint64, processes, servers int, length, pause, longest time.Duration, of []FaultKind) (all []Fault) {
	r := Random(seed, "schedule")
	for at := time.Duration(0); ; {
		at += time.Duration(r.Int64N(int64(2 * pause)))
		if at >= length {
			return all
		}
		all = append(all, Fault{
			At: at, For: time.Duration(r.Int64N(1 + r.Int64N(int64(longest)))), What: of[r.IntN(len(of))],
			Process: r.IntN(processes), Server: r.IntN(servers), Detail: r.IntN(1000),
		})
	}
}

// refusals are the texts with which servers refuse.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOSCRIPT No matching script. Please use EVAL.",
}

// Play brings about the faults at their times, and returns when the last is over. Each is told
// when it begins. Two at once that do the same to a link or a server end together.
func (w *World) Play(faults []Fault, told func(Fault)) {
	began := time.Now()
	var all sync.WaitGroup
	for _, f := range faults {
		time.Sleep(f.At - time.Since(began))
		told(f)
		all.Go(func() { w.Bring(f) })
	}
	all.Wait()
}

// Bring brings about one fault, and returns when it is over.
func (w *World) Bring(f Fault) {
	s, l := w.Servers[f.Server], w.Links[f.Process][f.Server]
	link, process, server := []*Link{l}, w.Links[f.Process], []*Link{}
	for _, links := range w.Links {
		server = append(server, links[f.Server])
	}
	switch f.What {
	case Cut:
		f.on(link, 0, l.Cut, nil)
	case LoseReply:
		f.on(link, 1, func() { l.OnReply(f.loseReply()) }, func() { l.OnReply(nil) })
	case HoldRequests:
		f.on(link, 1, func() { l.HoldRequests(true) }, func() { l.HoldRequests(false) })
	case HoldReplies:
		f.on(link, 1, func() { l.HoldReplies(true) }, func() { l.HoldReplies(false) })
	case Straggle:
		f.on(link, 1, func() { l.OnRequest(straggle()) }, func() { l.OnRequest(nil); l.Release() })
	case SlowReplies:
		f.on(link, 1, func() {
			l.SetDelay(0, f.For/4)
			time.AfterFunc(f.For*3/4, func() { l.SetDelay(0, 0) }) // the last is as late as f is long
		}, nil)
	case Fade:
		f.on(link, 1, func() {
			l.SetDelay(0, f.For/6)
			time.AfterFunc(f.For/6, func() { l.SetDelay(0, 0); l.HoldRequests(true) })
		}, func() { l.HoldRequests(false) })
	case Unreachable:
		f.on(link, 1, func() { l.Refuse(true); l.Cut() }, func() { l.Refuse(false) })
	case Partition:
		f.on(process, 1, func() { f.partition(process, true) }, func() { f.partition(process, false) })
	case Pause:
		f.on(server, 1, s.Pause, s.Resume)
	case Reboot:
		f.on(server, 4, s.Kill, s.RestartWithMemory)
	case LoseMemory:
		if f.Detail%2 == 0 {
			f.on(server, 0, s.Forget, nil)
		} else {
			f.on(server, 4, s.Kill, s.Restart)
		}
	case Refusal:
		f.on(server, 4, func() { s.Refuse(refusals[f.Detail%len(refusals)]) }, func() { s.Refuse("") })
	case OutOfMemory:
		f.on(server, 1, func() { s.OutOfMemory(true) }, func() { s.OutOfMemory(false) })
	case LoseScripts:
		s.ForgetScripts()
	case ClockJump:
		w.Servers[0].JumpClock(f.For * 3 / 2)
	}
}

// on is a fault of some links that lasts for a part of its time; 0: for a moment.
func (f Fault) on(links []*Link, part time.Duration, begin, end func()) {
	for _, l := range links {
		l.begin()
	}
	begin()
	if part > 0 {
		time.Sleep(f.For / part)
	}
	if end != nil {
		end()
	}
	for _, l := range links {
		l.end()
	}
}

// straggle holds a script, and all that follows on its connection. Two are enough: others go
// over new connections.
func straggle() redistest.Hook {
	var left atomic.Int64
	left.Store(2)
	return redistest.Always(func(cmd []string) bool {
		return strings.HasPrefix(strings.ToUpper(cmd[0]), "EVAL") && left.Add(-1) >= 0
	}, redistest.Hold)
}

// loseReply cuts the connection in place of one of the next replies.
func (f Fault) loseReply() redistest.Hook {
	var left atomic.Int64
	left.Store(int64(1 + f.Detail%3))
	return func([]string) redistest.Verdict {
		if left.Add(-1) == 0 {
			return redistest.Cut
		}
		return redistest.Pass
	}
}

// partition has links hold everything. Half of them are cut when it ends.
func (f Fault) partition(links []*Link, on bool) {
	for _, l := range links {
		l.HoldRequests(on)
		l.HoldReplies(on)
		if !on && f.Detail%2 == 0 {
			l.Cut()
		}
	}
}
