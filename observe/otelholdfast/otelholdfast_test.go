package otelholdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/metricstest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/observe/otelholdfast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetrics(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]bool{"no keys": false, "keys": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := sdkmetric.NewManualReader()
			opts := []otelholdfast.Option{
				otelholdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
				otelholdfast.WithAttributes(attribute.String("locker", "orders")),
			}
			if keys {
				opts = append(opts, otelholdfast.WithKeyName(metricstest.KeyName))
			}
			o := redistest.Must(otelholdfast.Observer(opts...))(t)
			metricstest.Run(t, o, keys, func() map[metricstest.Point]float64 { return points(t, reader) })
		})
	}
}

// points reads all metrics.
func points(t *testing.T, reader *sdkmetric.ManualReader) map[metricstest.Point]float64 {
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	all := map[metricstest.Point]float64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		add := func(of attribute.Set, value float64) {
			p := metricstest.Point{Name: strings.ReplaceAll(m.Name, ".", "_")}
			locker := ""
			for _, a := range of.ToSlice() {
				switch a.Key {
				case "holdfast.key":
					p.Key = a.Value.AsString()
				case "locker":
					locker = a.Value.AsString()
				default:
					p.Label = a.Value.AsString()
				}
			}
			require.Equal(t, "orders", locker)
			all[p] = value
		}
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				add(p.Attributes, float64(p.Value))
			}
		case metricdata.Histogram[float64]:
			require.Equal(t, "s", m.Unit)
			for _, p := range d.DataPoints {
				require.Contains(t, p.Bounds, .001)
				add(p.Attributes, float64(p.Count))
			}
		default:
			t.Fatalf("%s: %T", m.Name, d)
		}
	}
	return all
}

// one is the only span that f makes.
func one(t *testing.T, f func(l holdfast.Locker, double *holdfasttest.Locker), opts ...otelholdfast.Option) sdktrace.ReadOnlySpan {
	t.Helper()
	double := redistest.Must(holdfasttest.New())(t)
	defer func() { require.NoError(t, double.Close()) }()
	spans := tracetest.NewSpanRecorder()
	provider := otelholdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	f(otelholdfast.Trace(double, append(opts, provider)...), double)
	require.Len(t, spans.Ended(), 1)
	require.Equal(t, "holdfast.Do", spans.Ended()[0].Name())
	return spans.Ended()[0]
}

func nothing(context.Context) error { return nil }

func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 20 * time.Millisecond
		span := one(t, func(l holdfast.Locker, double *holdfasttest.Locker) {
			release := redistest.Must(double.Hold("k"))(t)
			time.AfterFunc(wait, release)
			require.NoError(t, l.Do(t.Context(), "k", nothing))
		})
		require.Equal(t, []attribute.KeyValue{attribute.String("holdfast.key", "k")}, span.Attributes())
		require.Equal(t, codes.Unset, span.Status().Code)
		require.Len(t, span.Events(), 1)
		acquired := span.Events()[0]
		require.Equal(t, "holdfast.lock.acquired", acquired.Name)
		require.Equal(t, wait, acquired.Time.Sub(span.StartTime()))
		require.Equal(t, []attribute.KeyValue{attribute.Float64("holdfast.lock.wait.duration", wait.Seconds())}, acquired.Attributes)
	})
}

// Spans of the function are children of that of Do.
func TestTrace_Children(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	double := redistest.Must(holdfasttest.New())(t)
	defer double.Close()
	require.NoError(t, otelholdfast.Trace(double, otelholdfast.WithTracerProvider(provider)).Do(t.Context(), "k", func(ctx context.Context) error {
		require.NotNil(t, holdfast.LeaseFrom(ctx))
		_, child := provider.Tracer("test").Start(ctx, "child")
		child.End()
		return nil
	}))
	child, do := spans.Ended()[0], spans.Ended()[1]
	require.Equal(t, do.SpanContext().SpanID(), child.Parent().SpanID())
}

func TestTrace_Errors(t *testing.T) {
	type locker = holdfast.Locker
	busy := func(l locker, double *holdfasttest.Locker) {
		release := redistest.Must(double.Hold("secret:1"))(t)
		defer release()
		require.ErrorIs(t, l.Do(t.Context(), "secret:1", nothing, holdfast.WaitAtMost(time.Millisecond)), holdfast.ErrNotAcquired)
	}
	span := one(t, busy)
	require.Contains(t, span.Attributes(), attribute.String("error.type", "not_acquired"))
	require.Equal(t, codes.Error, span.Status().Code)
	require.Contains(t, span.Status().Description, "not acquired")
	require.Empty(t, span.Events())

	span = one(t, busy, otelholdfast.WithKeyName(func(string) string { return "name" }), otelholdfast.WithAttributes(attribute.Int("n", 1)))
	require.Contains(t, span.Attributes(), attribute.String("holdfast.key", "name"))
	require.Contains(t, span.Attributes(), attribute.Int("n", 1))
	require.NotContains(t, span.Status().Description, "secret")

	span = one(t, func(l locker, double *holdfasttest.Locker) {
		require.ErrorIs(t, l.Do(t.Context(), "k", func(context.Context) error { return double.Lose("k") }), holdfast.ErrLost)
	})
	require.Contains(t, span.Attributes(), attribute.String("error.type", "lost"))

	span = one(t, func(l locker, _ *holdfasttest.Locker) { require.NoError(t, l.Do(t.Context(), "a\xff", nothing)) })
	require.Contains(t, span.Attributes(), attribute.String("holdfast.key", "a\uFFFD"))

	span = one(t, func(l locker, _ *holdfasttest.Locker) {
		require.Error(t, l.Do(t.Context(), "k", func(context.Context) error { return errors.New("order a\xff") }))
	})
	require.Equal(t, "order a\uFFFD", span.Status().Description)

	canary := errors.New("canary")
	span = one(t, func(l locker, _ *holdfasttest.Locker) {
		require.ErrorIs(t, l.Do(t.Context(), "k", func(context.Context) error { return canary }), canary)
	})
	require.Contains(t, span.Attributes(), attribute.String("error.type", "_OTHER"))

	double := redistest.Must(holdfasttest.New())(t)
	defer double.Close()
	require.ErrorIs(t, otelholdfast.Trace(double).Do(t.Context(), "k", nil), holdfast.ErrInvalidArgument)

	one(t, func(l locker, _ *holdfasttest.Locker) { // the span ends
		require.Panics(t, func() { _ = l.Do(t.Context(), "k", func(context.Context) error { panic(canary) }) })
	})
}
