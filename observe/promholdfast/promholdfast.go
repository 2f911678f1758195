// Package promholdfast shows Prometheus what lockers do:
//
//	metrics := promholdfast.New()
//	prometheus.MustRegister(metrics)
//	locker, err := rlock.New(client, holdfast.WithObserver(metrics.Observer()))
//
// The page docs/metrics.md lists the metrics, and has alerts and a dashboard for Grafana.
package promholdfast

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/observe/internal/metrics"
)

// Metrics are the metrics of lockers, as a [prometheus.Collector]. Safe for concurrent use.
type Metrics struct {
	keyName func(string) string
	all     []metric // by metrics.ID
}

// metric is one of Prometheus, as a vector.
type metric struct {
	prometheus.Collector
	add func(value float64, labels ...string)
}

// Option is an option of [New].
type Option interface{ apply(*Metrics) }

type option func(*Metrics)

func (o option) apply(m *Metrics) { o(m) }

// WithKeyName gives metrics the label holdfast_key: what name returns for the key of the
// lock. Each name costs some 200 time series, so name must map all keys to few, such as
// "shop:sku:42" to "shop:sku". It is called for each event, one call at a time for each
// observer. Default: no such label.
func WithKeyName(name func(key string) string) Option {
	return option(func(m *Metrics) { m.keyName = name })
}

// New returns metrics that are not registered yet.
func New(opts ...Option) *Metrics {
	m := &Metrics{}
	for _, o := range opts {
		o.apply(m)
	}
	for _, d := range metrics.All {
		m.all = append(m.all, m.newMetric(d))
	}
	return m
}

func (m *Metrics) newMetric(d metrics.Metric) metric {
	var labels []string
	if m.keyName != nil && d.OfKeys {
		labels = append(labels, translate(metrics.KeyLabel))
	}
	if d.Label != "" {
		labels = append(labels, translate(d.Label))
	}
	name := translate(d.Name)
	switch d.Kind {
	case metrics.Counter:
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name + "_total", Help: d.Help}, labels)
		return metric{v, func(value float64, labels ...string) { v.WithLabelValues(labels...).Add(value) }}
	case metrics.Gauge:
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.Help}, labels)
		return metric{v, func(value float64, labels ...string) { v.WithLabelValues(labels...).Add(value) }}
	default:
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name + "_seconds", Help: d.Help, Buckets: metrics.Buckets}, labels)
		return metric{v, func(value float64, labels ...string) { v.WithLabelValues(labels...).Observe(value) }}
	}
}

// translate makes a name of OpenTelemetry one of Prometheus, as exporters do.
func translate(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Observer returns an observer for one locker, for [holdfast.WithObserver]. The metrics are
// sums over all lockers that have one.
func (m *Metrics) Observer() holdfast.Observer {
	return metrics.Observer(func(id metrics.ID, value float64, key, label string) {
		var labels [2]string
		n := 0
		if d := &metrics.All[id]; m.keyName != nil && d.OfKeys {
			labels[n], n = key, n+1
		}
		if metrics.All[id].Label != "" {
			labels[n], n = label, n+1
		}
		m.all[id].add(value, labels[:n]...)
	}, m.keyName)
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
}
