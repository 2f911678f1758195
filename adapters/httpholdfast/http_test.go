package httpholdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/httpholdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// All processes of a service do this. A program has an rlock.Locker where the example has a
// double.
func Example() {
	locks, err := holdfasttest.New()
	if err != nil {
		panic(err)
	}
	oneByOne, err := httpholdfast.New(locks, func(r *http.Request) string {
		user, _, _ := r.BasicAuth()
		return "user:" + user
	}, httpholdfast.WithWait(2*time.Second))
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(oneByOne(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "holds", holdfast.LeaseFrom(r.Context()).Key()) // r.Context() ends if the lock is lost
	})))
	defer server.Close()
	answer, err := http.Get("http://ada:secret@" + server.Listener.Addr().String())
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	fmt.Printf("%s%v", body, err)
	// Output:
	// holds user:ada
	// <nil>
}

const patience = redistest.Patience

// service is one process of a service: requests are for a key, and the handler of each waits
// for its entry in the channel of steps.
type service struct {
	*httptest.Server
	locks   *rlock.Locker
	log     redistest.Log
	entered chan *http.Request
	steps   chan func(http.ResponseWriter, *http.Request)
	ended   chan struct{} // has an entry for each request that is over
}

func newService(t *testing.T, redis *redistest.Server, opts ...httpholdfast.Option) *service {
	return newServiceOf(t, redis, holdfast.DefaultLease, opts...)
}

// short is a lease whose loss is noticed soon.
const short = 3 * time.Second

func newServiceOf(t *testing.T, redis *redistest.Server, lease time.Duration, opts ...httpholdfast.Option) *service {
	locks, err := rlock.New(redis.Client(t), rlock.WithLease(lease))
	require.NoError(t, err)
	s := &service{
		locks:   locks,
		entered: make(chan *http.Request, 10),
		steps:   make(chan func(http.ResponseWriter, *http.Request), 10),
		ended:   make(chan struct{}, 10),
	}
	opts = append([]httpholdfast.Option{httpholdfast.WithLogger(slog.New(slog.NewTextHandler(&s.log, nil)))}, opts...)
	middleware, err := httpholdfast.New(locks, func(r *http.Request) string { return r.URL.Query().Get("key") }, opts...)
	require.NoError(t, err)
	handler := middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.entered <- r
		(<-s.steps)(w, r)
	}))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { s.ended <- struct{}{} }()
		handler.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&s.log, nil), slog.LevelInfo)
	s.Start()
	t.Cleanup(func() {
		close(s.steps) // a handler that still waits after a failure panics
		s.Close()
		require.NoError(t, locks.Close())
	})
	return s
}

// answer is what a client gets.
type answer struct {
	status     int
	retryAfter string
	body       string
	err        error
}

// get sends a request. Its answer comes on the channel.
func (s *service) get(ctx context.Context, key string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/?key="+key, nil)
		if err != nil {
			panic(err)
		}
		r, err := s.Client().Do(request)
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		got <- answer{r.StatusCode, r.Header.Get("Retry-After"), string(body), err}
	}()
	return got
}

// in returns the next request that is in the handler.
func (s *service) in(t *testing.T) *http.Request {
	t.Helper()
	return receive(t, s.entered)
}

func receive[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	return got
}

func reply(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }

func returnAtEnd(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var done = answer{status: http.StatusOK, body: "done"}

func TestG1_OneRequestOfAKeyAtATime(t *testing.T) {
	redis := redistest.Start(t)
	first, second := newService(t, redis), newService(t, redis)
	for _, other := range []*service{first, second} {
		served := first.get(t.Context(), "ada")
		require.Equal(t, "ada", holdfast.LeaseFrom(first.in(t).Context()).Key())

		refused := receive(t, other.get(t.Context(), "ada"))
		require.Equal(t, answer{http.StatusConflict, "1", "Conflict\n", nil}, refused)

		another := other.get(t.Context(), "bob")
		other.in(t)
		first.steps <- reply
		other.steps <- reply
		require.Equal(t, done, receive(t, served))
		require.Equal(t, done, receive(t, another))
	}
	require.Empty(t, first.log.String()+second.log.String())
}

func TestWait(t *testing.T) {
	redis := redistest.Start(t)
	first, second := newService(t, redis), newService(t, redis, httpholdfast.WithWait(patience))
	served := first.get(t.Context(), "ada")
	first.in(t)
	waits := second.get(t.Context(), "ada")
	require.Eventually(t, func() bool { // it listens
		channels := redis.Do(t, "PUBSUB", "CHANNELS")
		listeners, err := channels.AsStrSlice()
		return err == nil && len(listeners) > 0
	}, patience, time.Millisecond)
	require.Empty(t, second.entered)
	first.steps <- reply
	second.steps <- reply
	require.Equal(t, done, receive(t, served))
	require.Equal(t, done, receive(t, waits))
}

func TestWait_InVain(t *testing.T) {
	redis := redistest.Start(t)
	first := newService(t, redis)
	second := newService(t, redis, httpholdfast.WithWait(50*time.Millisecond),
		httpholdfast.WithBusyStatus(http.StatusTooManyRequests), httpholdfast.WithRetryAfter(7*time.Second))
	served := first.get(t.Context(), "ada")
	first.in(t)
	began := time.Now()
	require.Equal(t, answer{http.StatusTooManyRequests, "7", "Too Many Requests\n", nil}, receive(t, second.get(t.Context(), "ada")))
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
	first.steps <- reply
	require.Equal(t, done, receive(t, served))
}

// A client that goes away waits no longer, and no longer keeps others waiting.
func TestClientGoesAway(t *testing.T) {
	redis := redistest.Start(t)
	s := newService(t, redis, httpholdfast.WithWait(patience))
	ctx, leave := context.WithCancel(t.Context())
	served := s.get(ctx, "ada")
	handled := s.in(t)
	waits := s.get(ctx, "ada")
	leave()
	require.ErrorIs(t, receive(t, served).err, context.Canceled)
	require.ErrorIs(t, receive(t, waits).err, context.Canceled)
	receive(t, handled.Context().Done())
	s.steps <- returnAtEnd
	s.steps <- reply
	require.Equal(t, done, receive(t, s.get(t.Context(), "ada")))
	s.in(t)
	require.Empty(t, s.entered, "the one that waited was served")
}

func TestG3_Loss(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(http.ResponseWriter, *http.Request)
		want answer
	}{
		"the handler returns":  {returnAtEnd, answer{http.StatusServiceUnavailable, "", "Service Unavailable\n", nil}},
		"the handler answered": {func(w http.ResponseWriter, r *http.Request) { reply(w, r); returnAtEnd(w, r) }, done},
		"the handler answers": {func(w http.ResponseWriter, r *http.Request) {
			returnAtEnd(w, r)
			http.Error(w, "lost", http.StatusGone)
		}, answer{http.StatusGone, "", "lost\n", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			s := newServiceOf(t, redis, short)
			got := s.get(t.Context(), "ada")
			ctx := s.in(t).Context()
			redis.Do(t, "FLUSHALL")
			receive(t, ctx.Done())
			require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
			s.steps <- c.do
			require.Equal(t, c.want, receive(t, got))
			require.Contains(t, s.log.String(), "level=WARN")
			require.Contains(t, s.log.String(), "lease lost")
		})
	}
}

// A key that Redis could not release does not spoil an answer, even an empty one.
func TestRedisAway(t *testing.T) {
	redis := redistest.Start(t)
	s := newServiceOf(t, redis, short)
	got := s.get(t.Context(), "ada")
	s.in(t)
	redis.Kill()
	s.steps <- func(http.ResponseWriter, *http.Request) {}
	require.Equal(t, answer{status: http.StatusOK}, receive(t, got))
	require.Empty(t, s.log.String())

	require.Equal(t, answer{http.StatusServiceUnavailable, "1", "Service Unavailable\n", nil}, receive(t, s.get(t.Context(), "bob")))
	require.Contains(t, s.log.String(), "not served")
	s.steps <- reply
	require.Equal(t, done, receive(t, s.get(t.Context(), "")), "a request without a lock")
	redis.Restart() // or Close could not release ada
}

// Redis hangs when the handler ends: the client has its answer while it does, on a connection that it
// can use again. Close of the locker waits for the release.
func TestRedisHangsAtTheRelease(t *testing.T) {
	redis := redistest.Start(t)
	proxy := redistest.NewProxy(t, redis.Addr())
	locks, err := rlock.New(redis.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), rlock.WithLease(5*patience))
	require.NoError(t, err)
	middleware, err := httpholdfast.New(locks, func(r *http.Request) string { return r.URL.Query().Get("key") })
	require.NoError(t, err)
	s := httptest.NewServer(middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("key") != "" {
			proxy.HoldRequests(true)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "done")
	})))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var reused []bool
	for _, query := range []string{"?key=ada", ""} {
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = append(reused, c.Reused) }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, s.URL+query, nil)
		require.NoError(t, err)
		got, err := s.Client().Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Equal(t, http.StatusCreated, got.StatusCode)
		require.Equal(t, "done", string(body))
	}
	require.Equal(t, []bool{false, true}, reused)

	s.Close()
	proxy.HoldRequests(false)
	require.NoError(t, locks.Close())
	free := redis.Do(t, "EXISTS", "ada")
	n, err := free.AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestClosed(t *testing.T) {
	s := newService(t, redistest.Start(t))
	require.NoError(t, s.locks.Close())
	require.Equal(t, http.StatusServiceUnavailable, receive(t, s.get(t.Context(), "ada")).status)
}

// What no retry cures is no 503.
func TestRefusal(t *testing.T) {
	redis := redistest.Start(t)
	redis.Do(t, "SET", "ada", "no lock")
	s := newService(t, redis)
	require.Equal(t, answer{http.StatusInternalServerError, "", "Internal Server Error\n", nil}, receive(t, s.get(t.Context(), "ada")))
	require.Contains(t, s.log.String(), "level=ERROR")
}

func TestPanic(t *testing.T) {
	s := newService(t, redistest.Start(t))
	s.steps <- func(http.ResponseWriter, *http.Request) { panic("no paper") }
	require.ErrorIs(t, receive(t, s.get(t.Context(), "ada")).err, io.EOF)
	s.steps <- reply
	require.Equal(t, done, receive(t, s.get(t.Context(), "ada")))
}

// Waits that end otherwise are answered, too.
func TestWait_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, err := holdfasttest.New(holdfasttest.WithMaxWaiters(1))
		require.NoError(t, err)
		middleware, err := httpholdfast.New(locks, func(*http.Request) string { return "ada" }, httpholdfast.WithWait(time.Hour))
		require.NoError(t, err)
		handler := middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("served") }))
		serve := func(timeout time.Duration) int { // a deadline that another middleware has set
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			return w.Code
		}
		release, err := locks.Hold("ada")
		require.NoError(t, err)
		defer release()
		require.Equal(t, http.StatusServiceUnavailable, serve(0), "before it began")
		first := make(chan int, 1)
		go func() { first <- serve(time.Minute) }()
		synctest.Wait()
		require.Equal(t, http.StatusConflict, serve(time.Minute), "too many waiters")
		require.Empty(t, first)
		require.Equal(t, http.StatusConflict, <-first, "after a minute")
	})
}

// Handlers can do with a locked request's writer what they can do with that of net/http.
func TestWriter(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(http.ResponseWriter)
		want answer
	}{
		"Flusher":    {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, answer{status: http.StatusOK}},
		"controller": {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, answer{status: http.StatusOK}},
		"Hijacker": {func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, err = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
				err = errors.Join(err, conn.Close())
			}
			if err != nil {
				panic(err)
			}
		}, answer{status: http.StatusAccepted}},
		"early hints": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
			answer{http.StatusServiceUnavailable, "", "Service Unavailable\n", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			s := newServiceOf(t, redis, short)
			got := s.get(t.Context(), "ada")
			s.in(t)
			redis.Do(t, "FLUSHALL")
			s.steps <- func(w http.ResponseWriter, r *http.Request) { c.do(w); returnAtEnd(w, r) }
			require.Equal(t, c.want, receive(t, got))
			receive(t, s.ended)
			require.NotContains(t, s.log.String(), "http: ", "of net/http")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	locks, err := holdfasttest.New()
	require.NoError(t, err)
	key := func(*http.Request) string { return "key" }
	for _, c := range []struct {
		locks holdfast.Locker
		key   func(*http.Request) string
		opts  []httpholdfast.Option
	}{
		{nil, key, nil}, {locks, nil, nil}, {locks, key, []httpholdfast.Option{nil}},
		{locks, key, []httpholdfast.Option{httpholdfast.WithWait(-1)}},
		{locks, key, []httpholdfast.Option{httpholdfast.WithBusyStatus(http.StatusOK)}},
		{locks, key, []httpholdfast.Option{httpholdfast.WithRetryAfter(1500 * time.Millisecond)}},
		{locks, key, []httpholdfast.Option{httpholdfast.WithRetryAfter(0)}},
		{locks, key, []httpholdfast.Option{httpholdfast.WithLogger(nil)}},
	} {
		_, err := httpholdfast.New(c.locks, c.key, c.opts...)
		require.ErrorContains(t, err, "httpholdfast: New: ")
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
}
