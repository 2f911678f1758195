package promholdfast_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/metricstest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/observe/promholdfast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetrics(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]bool{"no keys": false, "keys": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opts []promholdfast.Option
			if keys {
				opts = append(opts, promholdfast.WithKeyName(metricstest.KeyName))
			}
			m := promholdfast.New(opts...)
			reg := prometheus.NewPedanticRegistry()
			require.NoError(t, reg.Register(m))
			metricstest.Run(t, m.Observer(), keys, func() map[metricstest.Point]float64 { return points(t, reg) })
		})
	}
}

// points reads all metrics.
func points(t *testing.T, reg prometheus.Gatherer) map[metricstest.Point]float64 {
	families := redistest.Must(reg.Gather())(t)
	all := map[metricstest.Point]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			p := metricstest.Point{Name: strings.TrimSuffix(strings.TrimSuffix(f.GetName(), "_total"), "_seconds")}
			for _, l := range m.GetLabel() {
				if l.GetName() == "holdfast_key" {
					p.Key = l.GetValue()
				} else {
					p.Label = l.GetValue()
				}
			}
			all[p] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestLint(t *testing.T) {
	require.Empty(t, redistest.Must(testutil.CollectAndLint(told()))(t))
}

// The metrics are sums over all lockers.
func TestObserversShareMetrics(t *testing.T) {
	m := promholdfast.New()
	for range 2 {
		m.Observer().Waiters(holdfast.WaitersEvent{Key: "k", Waiting: 2})
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m)
	require.EqualValues(t, 4, points(t, reg)[metricstest.Point{Name: "holdfast_lock_waiting"}])
}

// told are metrics with a value of each.
func told() *promholdfast.Metrics {
	m := promholdfast.New(promholdfast.WithKeyName(func(key string) string { return key }))
	o := m.Observer()
	o.Acquired(holdfast.AcquiredEvent{Key: "k", How: holdfast.ByCall})
	o.Failed(holdfast.FailedEvent{Key: "k", Err: holdfast.ErrNotAcquired})
	o.Released(holdfast.ReleasedEvent{Key: "k"})
	o.Renewed(holdfast.RenewedEvent{Key: "k"})
	o.OutageBegan(holdfast.OutageBeganEvent{})
	o.OutageEnded(holdfast.OutageEndedEvent{})
	return m
}

// series are the names that a query may use for each metric, with the labels.
func series(t *testing.T) (all map[string][]string, metrics []string) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(told())
	families := redistest.Must(reg.Gather())(t)
	all = map[string][]string{}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		metrics = append(metrics, f.GetName())
		if f.GetMetric()[0].GetHistogram() == nil {
			all[f.GetName()] = labels
			continue
		}
		all[f.GetName()+"_sum"], all[f.GetName()+"_count"] = labels, labels
		all[f.GetName()+"_bucket"] = append(labels, "le")
	}
	return all, metrics
}

// Queries in the dashboard and in the page name only series and labels that there are.
func TestQueries(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(redistest.Must(os.ReadFile("../../docs/dashboard.json"))(t), &dashboard))
	page := redistest.Must(os.ReadFile("../../docs/metrics.md"))(t)
	queries := regexp.MustCompile("(?ms)^```promql\n(.*?)^```$").FindAllString(string(page), -1)
	require.NotEmpty(t, queries)
	known, metrics := series(t)
	shown := ""
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			require.NotEmpty(t, target.Expr, p.Title)
			queries = append(queries, target.Expr)
			shown += target.Expr + "\n"
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, target.Expr, label[1], p.Title)
			}
		}
	}
	for _, q := range queries {
		require.Empty(t, unknown(q, known), q)
	}
	for _, name := range metrics {
		require.Contains(t, shown, name, "no panel shows it")
		require.Contains(t, string(page), "| `"+name+"` |", "docs/metrics.md")
	}
}

func TestUnknownNamesAreFound(t *testing.T) {
	known, _ := series(t)
	for _, q := range []string{
		"rate(holdfast_lock_losses_total[5m])", "holdfast_lock_wait_duration_seconds", `holdfast_lock_held{error_type="lost"}`,
		"sum by (how) (holdfast_lock_acquired_total)", "quantile_histogram(holdfast_lock_held)",
	} {
		require.NotEmpty(t, unknown(q, known), q)
	}
}

// unknown are the words of a query that are neither PromQL nor a series, nor a label of a
// series that the query names.
func unknown(query string, known map[string][]string) (words []string) {
	query = regexp.MustCompile("```promql|```|(?m)#.*$|\"[^\"]*\"|\\[[^]]*\\]").ReplaceAllString(query, " ")
	all := regexp.MustCompile(`\b[a-zA-Z_]\w*`).FindAllString(query, -1)
	allowed := map[string]bool{}
	for _, w := range []string{"sum", "by", "rate", "increase", "histogram_quantile", "clamp_min", "or", "and", "max"} {
		allowed[w] = true
	}
	for _, w := range all {
		for _, label := range known[w] {
			allowed[label] = true
		}
	}
	for _, w := range all {
		if _, is := known[w]; !is && !allowed[w] {
			words = append(words, w)
		}
	}
	return words
}
