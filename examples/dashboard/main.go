// Dashboard locks keys under a load, and shows what happens as metrics for Prometheus.
//
//	go run .                          the metrics are on http://127.0.0.1:2112/metrics
//	go run . -listen 127.0.0.1:0      on a free port
//	go run . -redis localhost:6379    on a real Redis
//
// Run it in its own folder: it is a module of its own. For its dashboard, have Prometheus scrape this address, and import
// docs/dashboard.json into Grafana.
//
// Workers sell goods under a lock for each. Most want the same few goods, so some wait, and some give up. Now and then one
// stands still, and its lease ends by its cap: a lost lock. When a real Redis is stopped, the load goes on, and the metrics
// show the outage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/observe/promholdfast"
)

var (
	listen  = flag.String("listen", "127.0.0.1:2112", "`address` of the page /metrics")
	workers = flag.Int("workers", 20, "workers that sell side by side")
)

func main() { demo.MainOnRedis(run, nil) }

func run(ctx context.Context, redis *demo.Redis) error {
	if *workers < 1 {
		return errors.New("-workers: at least 1")
	}
	metrics := promholdfast.New(promholdfast.WithKeyName(goodsOf))
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	locker, err := fair.New(redis, holdfast.WithObserver(metrics.Observer()), holdfast.WithLease(3*time.Second))
	if err != nil {
		return err
	}
	defer locker.Close()

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	g, running := demo.NewGroup(ctx)
	g.Go(func() error { return server.Serve(listener) })
	context.AfterFunc(running, func() { _ = server.Close() })
	fmt.Printf("Metrics: http://%s/metrics; Ctrl-C ends it.\n", listener.Addr())
	for range *workers {
		g.Go(func() error { return work(running, locker, redis) })
	}
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// goodsOf names keys such as "example:run:shoes:7" by their goods. A key itself would be too many.
func goodsOf(key string) string { return strings.Split(key, ":")[2] }

// later are errors after which a worker sells something else.
var later = []error{holdfast.ErrNotAcquired, holdfast.ErrLost, holdfast.ErrUnavailable, holdfast.ErrUnknown}

// work is one worker.
func work(ctx context.Context, locker holdfast.Locker, redis *demo.Redis) error {
	for {
		key := redis.Key("shoes", strconv.Itoa(rand.N(1000)))
		if rand.N(3) == 0 {
			key = redis.Key("concert", "1") // everybody wants these tickets
		}
		err := locker.Do(ctx, key, sell, holdfast.WaitAtMost(100*time.Millisecond), holdfast.MaxHold(2*time.Second))
		if err != nil && !slices.ContainsFunc(later, func(e error) bool { return errors.Is(err, e) }) {
			return err
		}
		if err := demo.Sleep(ctx, rand.N(100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// sell takes some milliseconds, and one time in 2000 forever.
func sell(ctx context.Context) error {
	if rand.N(2000) == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return demo.Sleep(ctx, rand.N(20*time.Millisecond))
}
