package otelholdfast

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/observe/internal/metrics"
)

// traced is a locker with spans.
type traced struct {
	holdfast.Locker
	config
	tracer trace.Tracer
}

// Trace returns l with a span for each Do, which is the parent of the spans of its function.
// The span has the key, the event holdfast.lock.acquired at the end of the wait, with the
// seconds of the wait, and error.type if Do fails. The other calls have no span. Keep l for the
// calls of its [holdfast.Operator].
func Trace(l holdfast.Locker, opts ...Option) holdfast.Locker {
	c := configured(opts)
	return &traced{l, c, c.tracers.Tracer(scope)}
}

func (t *traced) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) error {
	if f == nil {
		return t.Locker.Do(ctx, key, nil, opts...) // which refuses it
	}
	name := key
	if t.keyName != nil {
		name = t.keyName(key)
	}
	name = strings.ToValidUTF8(name, "\uFFFD") // exporters refuse others
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, "holdfast.Do", trace.WithAttributes(t.always...),
		trace.WithAttributes(attribute.String(metrics.KeyLabel, name)))
	defer span.End()
	err := t.Locker.Do(ctx, key, func(ctx context.Context) error {
		wait := attribute.Float64(metrics.All[metrics.WaitDuration].Name, time.Since(began).Seconds())
		span.AddEvent(metrics.All[metrics.Acquired].Name, trace.WithAttributes(wait))
		return f(ctx)
	}, opts...)
	if err != nil {
		why := metrics.ErrorType(err)
		span.SetAttributes(attribute.String(metrics.ErrorLabel, why))
		if t.keyName == nil {
			why = strings.ToValidUTF8(err.Error(), "\uFFFD") // which names the key
		}
		span.SetStatus(codes.Error, why)
	}
	return err
}
