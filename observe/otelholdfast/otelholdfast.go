// Package otelholdfast shows OpenTelemetry what lockers do: [Observer] makes metrics, and
// [Trace] makes spans.
//
//	observer, err := otelholdfast.Observer()
//	locker, err := rlock.New(client, holdfast.WithObserver(observer))
//	traced := otelholdfast.Trace(locker)
//
// The page docs/metrics.md lists the metrics, and has alerts and a dashboard for Grafana.
package otelholdfast

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/observe/internal/metrics"
)

const scope = "github.com/holdfast-go/holdfast/observe/otelholdfast"

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	always  []attribute.KeyValue
	keyName func(string) string
}

// Option is an option of [Observer] and of [Trace].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithMeterProvider sets where the metrics go. Default [otel.GetMeterProvider].
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(c *config) { c.meters = p })
}

// WithTracerProvider sets where the spans go. Default [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(c *config) { c.tracers = p })
}

// WithAttributes adds attributes to all metrics and spans, such as the name of a locker.
func WithAttributes(a ...attribute.KeyValue) Option {
	return option(func(c *config) { c.always = append(c.always, a...) })
}

// WithKeyName gives metrics the attribute holdfast.key: what name returns for the key of the
// lock. Each name costs some 200 time series, so name must map all keys to few, such as
// "shop:sku:42" to "shop:sku". It is called for each event, one call at a time for each
// observer, and concurrently by the callers of a traced Do. Spans have the name instead of
// the key. Default: the key in spans, and nothing in metrics.
func WithKeyName(name func(key string) string) Option {
	return option(func(c *config) { c.keyName = name })
}

func configured(opts []Option) config {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, o := range opts {
		o.apply(&c)
	}
	return c
}

// series is the key by which one set of attributes of a metric is found.
type series struct {
	id         metrics.ID
	key, label string
}

// Observer returns an observer for one locker, for [holdfast.WithObserver]. Metrics of
// several lockers with the same attributes are added up. The error is that of the meter.
func Observer(opts ...Option) (holdfast.Observer, error) {
	c := configured(opts)
	var add []func(float64, metric.MeasurementOption)
	for _, d := range metrics.All {
		f, err := instrument(c.meters.Meter(scope), d)
		if err != nil {
			return holdfast.Observer{}, err
		}
		add = append(add, f)
	}
	attributes := map[series]metric.MeasurementOption{}
	return metrics.Observer(func(id metrics.ID, value float64, key, label string) {
		s := series{id, key, label}
		a, known := attributes[s]
		if !known {
			all := append([]attribute.KeyValue(nil), c.always...)
			if key != "" {
				all = append(all, attribute.String(metrics.KeyLabel, key))
			}
			if label != "" {
				all = append(all, attribute.String(metrics.All[id].Label, label))
			}
			a = metric.WithAttributeSet(attribute.NewSet(all...))
			attributes[s] = a
		}
		add[id](value, a)
	}, c.keyName), nil
}

// instrument makes the instrument of a metric, and returns what adds to it.
func instrument(m metric.Meter, d metrics.Metric) (func(float64, metric.MeasurementOption), error) {
	ctx, unit, help := context.Background(), metric.WithUnit(d.Unit), metric.WithDescription(d.Help)
	switch d.Kind {
	case metrics.Counter:
		i, err := m.Int64Counter(d.Name, unit, help)
		return func(v float64, a metric.MeasurementOption) { i.Add(ctx, int64(v), a) }, err
	case metrics.Gauge:
		i, err := m.Int64UpDownCounter(d.Name, unit, help)
		return func(v float64, a metric.MeasurementOption) { i.Add(ctx, int64(v), a) }, err
	default:
		i, err := m.Float64Histogram(d.Name, unit, help, metric.WithExplicitBucketBoundaries(metrics.Buckets...))
		return func(v float64, a metric.MeasurementOption) { i.Record(ctx, v, a) }, err
	}
}
