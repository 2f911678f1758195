// Peruser serves HTTP requests, those of each user one at a time, although they come to three servers.
//
//	go run -C examples/peruser .                          needs no server
//	go run -C examples/peruser . -lock=false              without the middleware, money is lost
//	go run -C examples/peruser . -redis localhost:6379    on a real Redis
//
// Each pays 1 into the account of its user: it reads the balance, and writes it. They come all at once, and wait for their
// turn. One that waits for too long gets 429, and is sent again.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/adapters/httpholdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/rlock"
)

var (
	wait  = flag.Duration("wait", 500*time.Millisecond, "how long a request waits for its turn")
	lock  = flag.Bool("lock", true, "use the middleware; false shows what happens without it")
	again atomic.Int64 // requests that were sent again
)

func main() { demo.MainOnRedis(run, nil) }

// serve runs a server until ctx ends. It has a locker of its own, as one in another process would.
func serve(ctx context.Context, redis *demo.Redis, listener net.Listener) error {
	locker, err := rlock.New(redis)
	if err != nil {
		return err
	}
	defer locker.Close()
	oneByOne, err := httpholdfast.New(locker, func(r *http.Request) string {
		return redis.Key("lock", r.Header.Get("User")) // in a program: the user of a session, as clients cannot choose that
	}, httpholdfast.WithWait(*wait), httpholdfast.WithBusyStatus(http.StatusTooManyRequests))
	if err != nil {
		return err
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := pay(r.Context(), redis, r.Header.Get("User")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	if *lock {
		handler = oneByOne(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return server.Serve(listener)
}

// pay is the work of the handler. If the lock is lost, ctx ends.
func pay(ctx context.Context, redis *demo.Redis, user string) error {
	balance, err := redis.Number(ctx, redis.Key("account", user))
	if err != nil {
		return err
	}
	_ = demo.Sleep(ctx, 2*time.Millisecond) // the next call fails if ctx has ended
	return redis.SetNumber(ctx, redis.Key("account", user), balance+1)
}

// request sends one until it is served.
func request(ctx context.Context, server, user string) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server, nil)
		if err != nil {
			return err
		}
		r.Header.Set("User", user)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		answer.Body.Close()
		retry := answer.Header.Get("Retry-After")
		switch {
		case answer.StatusCode == http.StatusOK:
			return nil
		case retry != "": // not served
			again.Add(1)
			seconds, _ := strconv.Atoi(retry)
			_ = demo.Sleep(ctx, time.Duration(seconds)*time.Second)
		default: // a part of the work may be done
			return errors.New(answer.Status)
		}
	}
}

func run(ctx context.Context, redis *demo.Redis) error {
	servers, running := demo.NewGroup(ctx)
	var addresses []string
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, listener.Addr().String())
		servers.Go(func() error { return serve(running, redis, listener) })
	}
	servers.Go(func() error { return cmp.Or(ask(running, addresses), http.ErrServerClosed) })
	if err := servers.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	for user := range users {
		balance, err := redis.Number(ctx, redis.Key("account", strconv.Itoa(user)))
		if err != nil || balance != requests {
			return cmp.Or(err, fmt.Errorf("WRONG: user %d paid %d times 1, and has %d", user, requests, balance))
		}
		fmt.Printf("User %d paid %d times 1, and has %d.\n", user, requests, balance)
	}
	fmt.Printf("All is well. %d requests were sent again.\n", again.Load())
	return nil
}

const users, requests = 5, 60 // of each user

// ask sends all requests at once.
func ask(ctx context.Context, servers []string) error {
	clients, ctx := demo.NewGroup(ctx)
	for i := range users * requests {
		server, user := servers[i/users%len(servers)], strconv.Itoa(i%users)
		clients.Go(func() error { return request(ctx, server, user) })
	}
	return clients.Wait()
}
