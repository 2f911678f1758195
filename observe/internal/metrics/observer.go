package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Record adds a value to a metric. key and label are the values of its attributes; an
// attribute whose value is "" is left out.
type Record func(id ID, value float64, key, label string)

// observer records the events of a locker.
type observer struct {
	record  Record              // immutable
	keyName func(string) string // immutable
	mu      sync.Mutex          // held while an event is recorded
	waiting map[string]int      // by key, without those for which nobody waits; guarded by mu
	seen    map[string]bool     // names of keys; guarded by mu
}

// Observer returns the observer of one locker. keyName gives keys their names, which must be
// few; nil: keys have none.
func Observer(record Record, keyName func(string) string) holdfast.Observer {
	o := &observer{record: record, keyName: keyName, waiting: map[string]int{}, seen: map[string]bool{}}
	if keyName == nil {
		o.keyName = func(string) string { return "" }
		o.name("")
	}
	o.begin(false, "")
	return holdfast.Observer{
		Acquired: each(o, func(e holdfast.AcquiredEvent) {
			key := o.name(e.Key)
			record(Acquired, 1, key, string(e.How))
			record(Held, 1, key, "")
			if e.How != holdfast.ByReentry {
				record(WaitDuration, e.Waited.Seconds(), key, "")
			}
		}),
		Failed: each(o, func(e holdfast.FailedEvent) {
			key, why := o.name(e.Key), ErrorType(e.Err)
			record(Failed, 1, key, why)
			record(WaitDuration, e.Waited.Seconds(), key, why)
		}),
		Released: each(o, func(e holdfast.ReleasedEvent) { o.ended(o.name(e.Key), e.Held, ErrorType(e.Err)) }),
		Lost: each(o, func(e holdfast.LostEvent) {
			key, why := o.name(e.Key), typeOf(e.Err, lost)
			record(Lost, 1, key, why)
			o.ended(key, e.Held, why)
		}),
		Renewed: each(o, func(e holdfast.RenewedEvent) {
			key := o.name(e.Key)
			if e.Err != nil {
				record(RenewalFailed, 1, key, ErrorType(e.Err))
			} else {
				record(RenewalDelay, e.Late.Seconds(), key, "")
			}
		}),
		Waiters:     each(o, func(e holdfast.WaitersEvent) { o.waiters(e.Key, e.Waiting) }),
		OutageBegan: each(o, func(holdfast.OutageBeganEvent) { record(Outages, 1, "", "") }),
		OutageEnded: each(o, func(e holdfast.OutageEndedEvent) {
			record(Outages, -1, "", "")
			record(OutageDuration, e.Lasted.Seconds(), "", "")
		}),
		Dropped: each(o, o.dropped),
	}
}

func each[E any](o *observer, f func(E)) func(E) {
	return func(e E) {
		o.mu.Lock()
		defer o.mu.Unlock()
		f(e)
	}
}

// name is the name of key. A new one begins its counters.
func (o *observer) name(key string) string {
	name := strings.ToValidUTF8(o.keyName(key), "\uFFFD")
	if !o.seen[name] {
		o.seen[name] = true
		o.begin(true, name)
	}
	return name
}

// begin shows metrics at 0: those of keys, or the others.
func (o *observer) begin(ofKeys bool, name string) {
	for id, m := range All {
		if m.OfKeys != ofKeys {
			continue
		}
		if m.Kind == Gauge {
			o.record(ID(id), 0, name, "")
		}
		for _, v := range m.Values {
			o.record(ID(id), 0, name, v)
		}
	}
}

func (o *observer) ended(key string, held time.Duration, why string) {
	o.record(Held, -1, key, "")
	o.record(HoldDuration, held.Seconds(), key, why)
}

func (o *observer) waiters(key string, waiting int) {
	o.record(Waiting, float64(waiting-o.waiting[key]), o.name(key), "")
	if o.waiting[key] = waiting; waiting == 0 {
		delete(o.waiting, key)
	}
}

// byEvent are the dropped events of each kind, by the value of EventLabel.
func byEvent(e holdfast.DroppedEvent) map[string]int {
	return map[string]int{
		"acquired": e.Acquired, "failed": e.Failed, "released": e.Released, "lost": e.Lost, "renewed": e.Renewed,
		"waiters": e.Waiters, "outage_began": e.OutageBegan, "outage_ended": e.OutageEnded,
	}
}

// dropped keeps the sums right over all keys. The waiters of a key of which an event is missing count
// again with its next event.
func (o *observer) dropped(e holdfast.DroppedEvent) {
	for event, n := range byEvent(e) {
		o.record(Dropped, float64(n), "", event)
	}
	o.record(Acquired, float64(e.Acquired), "", Other)
	o.record(Failed, float64(e.Failed), "", Other)
	o.record(Lost, float64(e.Lost), "", Other)
	o.record(Held, float64(e.Acquired-e.Released-e.Lost), "", "")
	o.record(Outages, float64(e.OutageBegan-e.OutageEnded), "", "")
	if e.Waiters > 0 {
		for key := range o.waiting {
			o.waiters(key, 0)
		}
	}
}
