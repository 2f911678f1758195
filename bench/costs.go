package main

import "github.com/HdrHistogram/hdrhistogram-go"

// spent is what a store did meanwhile.
type spent struct {
	sent calls   // nil where the store does not tell
	cpu  float64 // in seconds
}

func spentDuring(st store, f func() error) (all spent, err error) {
	all.sent, err = st.callsDuring(func() (err error) {
		all.cpu, err = cpuDuring(st.cpu, f)
		return err
	})
	return all, err
}

// total is what all processes of a run did.
type total struct {
	cycles, all    float64
	cpu            float64 // in seconds, of all cycles
	allocated      float64 // of how many cycles the next two are
	objects, bytes float64
	waits          *hdrhistogram.Histogram
}

func totalOf(results ...childResult) (total, error) {
	t := total{waits: newWaits()}
	for _, r := range results {
		t.cycles += float64(r.Cycles)
		t.all += float64(r.All)
		t.cpu += r.CPU
		t.allocated += float64(r.Allocated)
		t.objects += float64(r.Objects)
		t.bytes += float64(r.Bytes)
		h, err := hdrhistogram.Decode([]byte(r.Waits))
		if err != nil {
			return t, err
		}
		t.waits.Merge(h)
	}
	return t, nil
}

// costs are what a cycle cost and how long it waited, under the names that the tables
// side by side show.
func (t total) costs(store spent, library string) sample {
	got := sample{
		"server CPU µs/cycle": store.cpu / t.all * 1e6,
		"client CPU µs/cycle": t.cpu / t.all * 1e6,
	}
	if t.objects > 0 {
		got["allocations/cycle"], got["bytes/cycle"] = t.objects/t.allocated, t.bytes/t.allocated
	}
	if store.sent != nil {
		sent := float64(store.sent.sentBy(library))
		got["commands/cycle"] = sent / t.all
		got["EVALSHA/cycle"] = float64(store.sent["evalsha"]) / t.all
		got["other commands/cycle"] = (sent - float64(store.sent["evalsha"])) / t.all
	}
	got.addWaits(t.waits)
	return got
}

// The quantiles of the waits in a sample.
var quantiles = []struct {
	name string
	q    float64
}{{"lock p50 µs", 50}, {"lock p99 µs", 99}, {"lock p99.9 µs", 99.9}, {"lock max µs", 100}}

// addWaits adds the quantiles, if anybody waited.
func (s sample) addWaits(waits *hdrhistogram.Histogram) {
	if waits.TotalCount() == 0 {
		return
	}
	for _, q := range quantiles {
		s[q.name] = float64(waits.ValueAtQuantile(q.q)) / 1e3
	}
}

// encoded is a histogram as a process tells it.
func encoded(waits *hdrhistogram.Histogram) (string, error) {
	text, err := waits.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(text), err
}
