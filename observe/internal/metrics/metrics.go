// Package metrics makes metrics from the events of a [holdfast.Observer]. The modules in observe/
// hand them to OpenTelemetry and to Prometheus, where they have the same names.
package metrics

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast"
)

// Kind is how the values of a metric are to be read.
type Kind uint8

const (
	Counter   Kind = iota // a sum, which grows
	Gauge                 // a sum of changes up and down
	Histogram             // of seconds
)

// ID names a metric: its place in [All].
type ID uint8

const (
	Acquired ID = iota
	Failed
	Lost
	RenewalFailed
	Dropped
	Held
	Waiting
	Outages
	WaitDuration
	HoldDuration
	RenewalDelay
	OutageDuration
)

// Metric describes a metric by the conventions of OpenTelemetry.
type Metric struct {
	Name   string
	Kind   Kind
	Unit   string
	Help   string
	OfKeys bool     // it has the attribute KeyLabel, if the user names keys
	Label  string   // its own attribute; "": none
	Values []string // of Label, if they are counted from 0 on, so that the first of them is an increase
}

// The attributes of metrics.
const (
	KeyLabel   = "holdfast.key"
	HowLabel   = "holdfast.how"
	EventLabel = "holdfast.event"
	ErrorLabel = "error.type"
)

// Buckets are the bounds of all histograms, in seconds: from a handover in this process to
// a lock that is held for minutes.
var Buckets = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// All are the metrics, by ID.
var All = [...]Metric{
	Acquired: {"holdfast.lock.acquired", Counter, "{entry}", "Entries that have begun.", true, HowLabel,
		[]string{"call", "handover", "grant", "re-entry"}},
	Failed:        {"holdfast.lock.failed", Counter, "{call}", "Lock calls that have failed.", true, ErrorLabel, failures},
	Lost:          {"holdfast.lock.lost", Counter, "{entry}", "Entries that have ended by loss.", true, ErrorLabel, losses},
	RenewalFailed: {"holdfast.lease.renewal.failed", Counter, "{renewal}", "Renewals that Redis has not confirmed.", true, ErrorLabel, unconfirmed},
	Dropped: {"holdfast.observer.dropped", Counter, "{event}", "Events that came too fast to be told.", false, EventLabel,
		slices.Sorted(maps.Keys(byEvent(holdfast.DroppedEvent{})))},
	Held:           {"holdfast.lock.held", Gauge, "{entry}", "Entries that are held now.", true, "", nil},
	Waiting:        {"holdfast.lock.waiting", Gauge, "{call}", "Lock calls that wait now.", true, "", nil},
	Outages:        {"holdfast.outage.active", Gauge, "{server}", "Servers that do not answer now.", false, "", nil},
	WaitDuration:   {"holdfast.lock.wait.duration", Histogram, "s", "Time that lock calls took, without re-entries.", true, ErrorLabel, nil},
	HoldDuration:   {"holdfast.lock.hold.duration", Histogram, "s", "Time for which entries were held.", true, ErrorLabel, nil},
	RenewalDelay:   {"holdfast.lease.renewal.delay", Histogram, "s", "Time by which confirmed renewals were late.", true, "", nil},
	OutageDuration: {"holdfast.outage.duration", Histogram, "s", "Time for which a server did not answer.", false, "", nil},
}
