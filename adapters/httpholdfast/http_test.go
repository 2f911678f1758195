package httpholdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/httpholdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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

// process is one process of a service, without its sockets. A request that is in the handler is in entered, and does
// what comes from steps.
type process struct {
	http.Handler
	log     redistest.Log
	entered chan *http.Request
	steps   chan http.HandlerFunc
}

func newProcess(t *testing.T, locks holdfast.Locker, opts ...httpholdfast.Option) *process {
	p := &process{entered: make(chan *http.Request, 10), steps: make(chan http.HandlerFunc, 10)}
	opts = append(opts, httpholdfast.WithLogger(slog.New(slog.NewTextHandler(&p.log, nil))))
	oneByOne := redistest.Must(httpholdfast.New(locks, func(r *http.Request) string { return r.URL.Query().Get("key") }, opts...))(t)
	p.Handler = oneByOne(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.entered <- r
		(<-p.steps)(w, r)
	}))
	return p
}

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T, locks *holdfasttest.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		locks := redistest.Must(holdfasttest.New(holdfast.WithMaxWaiters(1)))(t)
		f(t, locks)
	})
}

// onRedis is two lockers.
func onRedis(t *testing.T, opts ...holdfast.Option) (redis *redistest.Server, two [2]*rlock.Locker) {
	redis = redistest.Start(t)
	for i := range two {
		l := redistest.Must(rlock.New(redis.Client(t), opts...))(t)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		two[i] = l
	}
	return redis, two
}

// answer is what a client gets.
type answer struct {
	status           int
	retryAfter, body string
}

// get sends a request. Its answer comes on the channel.
func (p *process) get(ctx context.Context, key string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?key="+key, nil))
		got <- answer{w.Code, w.Header().Get("Retry-After"), w.Body.String()}
	}()
	return got
}

func reply(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }

func returnAtEnd(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var (
	done     = answer{http.StatusOK, "", "done"}
	conflict = answer{http.StatusConflict, "1", "Conflict\n"}
	away     = answer{http.StatusServiceUnavailable, "1", "Service Unavailable\n"}
	lost     = answer{http.StatusServiceUnavailable, "", "Service Unavailable\n"}
)

func TestG1_OneRequestOfAKeyAtATime(t *testing.T) {
	_, two := onRedis(t)
	first, second := newProcess(t, two[0]), newProcess(t, two[1])
	for _, other := range []*process{first, second} {
		served := first.get(t.Context(), "ada")
		require.Equal(t, "ada", holdfast.LeaseFrom((<-first.entered).Context()).Key())
		require.Equal(t, conflict, <-other.get(t.Context(), "ada"))
		another := other.get(t.Context(), "bob")
		<-other.entered
		first.steps <- reply
		other.steps <- reply
		require.Equal(t, done, <-served)
		require.Equal(t, done, <-another)
	}
	require.Empty(t, first.log.String()+second.log.String())
}

func TestG3_Loss(t *testing.T) {
	for name, c := range map[string]struct {
		do   http.HandlerFunc
		want answer
	}{
		"the handler returns":  {returnAtEnd, lost},
		"the handler answered": {func(w http.ResponseWriter, r *http.Request) { reply(w, r); returnAtEnd(w, r) }, done},
		"the handler answers": {func(w http.ResponseWriter, r *http.Request) {
			returnAtEnd(w, r)
			http.Error(w, "lost", http.StatusGone)
		}, answer{http.StatusGone, "", "lost\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, two := onRedis(t, holdfast.WithLease(15*time.Second)) // whose loss is noticed within 5 s
			p := newProcess(t, two[0])
			got := p.get(t.Context(), "ada")
			ctx := (<-p.entered).Context()
			redis.Do(t, "FLUSHALL")
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
			p.steps <- c.do
			require.Equal(t, c.want, <-got)
			require.Contains(t, p.log.String(), "level=WARN")
			require.Contains(t, p.log.String(), "lease lost")
		})
	}
}

func TestWait(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks, httpholdfast.WithWait(time.Minute),
			httpholdfast.WithBusyStatus(http.StatusTooManyRequests), httpholdfast.WithRetryAfter(7*time.Second))
		busy := answer{http.StatusTooManyRequests, "7", "Too Many Requests\n"}
		served := p.get(t.Context(), "ada")
		<-p.entered
		waits := p.get(t.Context(), "ada")
		synctest.Wait()
		require.Equal(t, busy, <-p.get(t.Context(), "ada"), "too many waiters")
		began := time.Now()
		require.Equal(t, busy, <-waits)
		require.Equal(t, time.Minute, time.Since(began))

		waits = p.get(t.Context(), "ada")
		synctest.Wait()
		p.steps <- reply
		p.steps <- reply
		require.Equal(t, done, <-served)
		require.Equal(t, done, <-waits)
	})
}

// A client that goes away, or a deadline of another middleware, ends the wait and the context of the handler.
func TestRequestEnds(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks, httpholdfast.WithWait(time.Hour))
		ctx, leave := context.WithCancel(t.Context())
		served := p.get(ctx, "ada")
		handled := <-p.entered
		waits := p.get(ctx, "ada")
		synctest.Wait()
		leave()
		require.Equal(t, conflict, <-waits)
		require.Equal(t, away, <-p.get(ctx, "ada"), "before it began")
		<-handled.Context().Done()
		p.steps <- returnAtEnd
		<-served
		require.Empty(t, p.entered, "the one that waited was served")
		p.steps <- reply
		require.Equal(t, done, <-p.get(t.Context(), "ada"))
	})
}

// A key that Redis cannot release delays an answer a little, and does not spoil it, even an empty one.
func TestRedisAway(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks)
		got := p.get(t.Context(), "ada")
		<-p.entered
		locks.Outage(time.Second)
		began := time.Now()
		p.steps <- func(http.ResponseWriter, *http.Request) {}
		require.Equal(t, answer{status: http.StatusOK}, <-got)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.Empty(t, p.log.String())

		require.Equal(t, away, <-p.get(t.Context(), "bob"))
		require.Contains(t, p.log.String(), "not served")
		p.steps <- reply
		require.Equal(t, done, <-p.get(t.Context(), ""), "a request without a lock")
		time.Sleep(time.Second) // then the key is released
		require.NoError(t, locks.Close())
		require.Equal(t, away, <-p.get(t.Context(), "ada"), "the locker is closed")
	})
}

// What no retry cures is no 503.
func TestRefusal(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks)
		refused := answer{http.StatusInternalServerError, "", "Internal Server Error\n"}
		require.Equal(t, refused, <-p.get(t.Context(), strings.Repeat("k", 10_000)))
		require.Contains(t, p.log.String(), "level=ERROR")
	})
}

func TestPanic(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks)
		p.steps <- func(http.ResponseWriter, *http.Request) { panic("no paper") }
		require.PanicsWithValue(t, "no paper", func() {
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/?key=ada", nil))
		})
		p.steps <- reply
		require.Equal(t, done, <-p.get(t.Context(), "ada"))
	})
}

// Handlers can do with a locked request's writer what they can do with that of net/http. What they have sent is an answer.
func TestWriter(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(http.ResponseWriter)
		status int
	}{
		"Flusher":    {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, http.StatusOK},
		"controller": {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, http.StatusOK},
		"Hijacker": {func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, err = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
				err = errors.Join(err, conn.Close())
			}
			if err != nil {
				panic(err)
			}
		}, http.StatusAccepted},
		"early hints": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			locks := redistest.Must(holdfasttest.New())(t)
			p := newProcess(t, locks)
			s := httptest.NewUnstartedServer(p)
			s.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&p.log, nil), slog.LevelInfo)
			s.Start()
			defer s.Close()
			p.steps <- func(w http.ResponseWriter, _ *http.Request) { c.do(w); require.NoError(t, locks.Lose("ada")) }
			got := redistest.Must(s.Client().Get(s.URL + "/?key=ada"))(t)
			require.NoError(t, got.Body.Close())
			require.Equal(t, c.status, got.StatusCode)
			s.Close() // when the request is over
			require.NotContains(t, p.log.String(), "http: ", "of net/http")
		})
	}
}

// What has not been sent is no answer.
func TestWriterThatCannotFlush(t *testing.T) {
	bubble(t, func(t *testing.T, locks *holdfasttest.Locker) {
		p := newProcess(t, locks)
		p.steps <- func(w http.ResponseWriter, _ *http.Request) {
			require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
			require.NoError(t, locks.Lose("ada"))
		}
		type plain struct{ http.ResponseWriter } // without the Flush of the recorder
		w := httptest.NewRecorder()
		p.ServeHTTP(plain{w}, httptest.NewRequest(http.MethodGet, "/?key=ada", nil))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
	})
}

func TestNewRefuses(t *testing.T) {
	locks := redistest.Must(holdfasttest.New())(t)
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
