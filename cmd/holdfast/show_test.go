package main

import (
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// java is an owner of Redisson.
const java = "7f3c0c9e-0d0a-4b43-8f0e-0a1b2c3d4e5f:77"

// asks runs holdfast in this process, and requires its exit status. A machine that stands still for seconds looks like a
// server that does not answer.
func asks(t *testing.T, status int, url, input string, args ...string) (out, errors string) {
	t.Helper()
	for tries := 1; ; tries++ {
		var stdout, stderr strings.Builder
		got := execute(append(args, "--redis", url), strings.NewReader(input), &stdout, &stderr)
		if got == statusAway && status != statusAway && tries < 5 {
			t.Log(stderr.String())
			continue
		}
		require.Equal(t, status, got, stderr.String())
		return stdout.String(), stderr.String()
	}
}

// printed is what holdfast prints that succeeds.
func printed(t *testing.T, url string, args ...string) string {
	t.Helper()
	out, _ := asks(t, 0, url, "", args...)
	return out
}

// fromJSON reads it.
func fromJSON[T any](t *testing.T, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func urlOf(s *redistest.Server) string { return "redis://" + s.Addr() }

func locked(t *testing.T, l locker, key string) *holdfast.Lease {
	t.Helper()
	return redistest.Must(l.TryLock(t.Context(), key))(t)
}

func TestList(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := newLocker(t, s, holdfast.WithLabel("me \n"))
	nested := locked(t, locker, "jobs:b")
	_, err := locker.Lock(nested.Bind(t.Context()), "jobs:b")
	require.NoError(t, err)
	locked(t, locker, "jobs:a\x1b[2J")
	locked(t, locker, "other")
	s.Do(t, "HSET", "jobs:java", java, "1")
	s.Do(t, "RPUSH", "redisson_lock_queue:{jobs:java}", java+"8")
	s.Do(t, "HSET", "jobs:no-lock", "colour", "red")
	s.Do(t, "HSET", "holdfast_heartbeat:{jobs:java}", "x", "1")
	s.Do(t, "SET", "jobs:string", "x")

	locks := fromJSON[[]lock](t, printed(t, urlOf(s), "ls", "-o", "json", "jobs:*"))
	require.Len(t, locks, 3)
	require.InDelta(t, 30_000, locks[1].RemainingMS, 20_000)
	locks[1].RemainingMS = 0
	require.Equal(t, []lock{
		{Key: "jobs:b", Kind: "lock", Holder: nested.Owner(), Library: "holdfast", Label: "me \n", Entries: 2},
		{Key: "jobs:java", Kind: "fair", Holder: java, Library: "redisson", Entries: 1, RemainingMS: -1, Waiting: 1},
	}, locks[1:])

	require.Regexp(t, `(?s)^KEY +KIND .*\n"jobs:a\\x1b\[2J" .*\njobs:java +fair +`+java+` +1 +no end +1 *\nother +lock .* +"me \\n"\n$`, printed(t, urlOf(s), "ls"))

	require.Equal(t, "[]\n", printed(t, urlOf(s), "ls", "-o", "json", "none*"))
	asks(t, statusUsage, urlOf(s), "", "ls", "a", "b")
	asks(t, statusUsage, urlOf(s), "", "ls", "--watch=0s")
	_, text := asks(t, statusUsage, urlOf(s), "", "ls", "--watch", "1s")
	require.Contains(t, text, "write --watch=1s")
	require.EqualError(t, failed(io.EOF), "redis unavailable: EOF")
}

func TestListManyLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "EVAL", "for i = 1, 5000 do redis.call('HSET', 'k' .. i, '"+java+"', '1') end", "0")
	s.Do(t, "CONFIG", "RESETSTAT")
	require.Equal(t, 5001, strings.Count(printed(t, urlOf(s), "ls"), "\n"))
	text := redistest.Must(s.Do(t, "INFO", "commandstats").ToString())(t)
	require.Contains(t, text, "cmdstat_scan:")
	require.NotContains(t, text, "cmdstat_keys:")
}

func TestListWatches(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, s.Addr(), "ls", "--watch=1ms", "-o", "json")
	p.says("[]", "[]")
	locked(t, newLocker(t, s), "k")
	for p.out.Scan() && p.out.Text() == "[]" {
	}
	require.Contains(t, p.out.Text(), `"key":"k"`)

	s.Kill() // it goes on when Redis is back, and has forgotten the lock
	s.Restart()
	for p.out.Scan() && p.out.Text() != "[]" {
	}
	require.Equal(t, "[]", p.out.Text())
}

func TestListOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 1)
	locker := redistest.Must(rlock.New(c.Client(t)))(t)
	defer func() { require.NoError(t, locker.Close()) }()
	keys, slots := []string{"a", "b", "c", "d"}, map[string]bool{}
	for _, key := range keys {
		locked(t, locker, key)
		slots[c.Owner(t, key).Addr()] = true
	}
	require.Len(t, slots, 2, "a key for each master")
	for _, s := range c.Replicas(t) {
		s.Kill() // which nobody asks
	}
	url := urlOf(c.Masters(t)[0])
	out, _ := asks(t, 0, url, "", "ls")
	require.Equal(t, 1+len(keys), strings.Count(out, "\n"), out)
	for _, key := range keys {
		require.Contains(t, printed(t, url, "show", key), "entries  1\n")
	}
	asks(t, 0, url, "", "unlock", "--yes", "a")
	asks(t, statusNo, url, "", "unlock", "a")
}

func TestShow(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.Equal(t, "key      "+key+"\nkind     lock\nholder   none\nwaiting  0\n", printed(t, urlOf(s), "show", key))

	started(t, s.Addr(), "--fair")
	second := start(t, s.Addr(), ran("--fair")...)
	awaitQueue(t, s, 1)
	const dead = "0f3c0c9e-0d0a-4b43-8f0e-0a1b2c3d4e5f"
	s.Do(t, "RPUSH", "redisson_lock_queue:{"+key+"}", java, dead+":012")
	s.Do(t, "HSET", "holdfast_heartbeat:{"+key+"}", dead, "1", "label "+dead, "web-4 \x1b[2J")
	out, _ := asks(t, 0, urlOf(s), "", "show", key)
	require.Regexp(t, `(?s)^key +`+key+`\nkind +fair\nholder +\S+:0\d+ \(holdfast\)\nlabel +\S+/\d+\nentries  1\nleft +[23]\d.*s\nwaiting  3\n`+
		` +1  \S+:0\d+ \(holdfast\) \S+/\d+\n +2  `+java+` \(redisson\)\n +3  \S+:012 \(holdfast, dead\) "web-4 \\x1b\[2J"\n$`, out)

	out, _ = asks(t, 0, urlOf(s), "", "show", "-o", "json", key)
	var got struct {
		lock
		Queue []waiter
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, 3, got.Waiting)
	require.Equal(t, waiter{java, "redisson", "", false}, got.Queue[1])

	s.Do(t, "HSET", "no-lock", "colour", "red")
	_, text := asks(t, statusRefused, urlOf(s), "", "show", "no-lock")
	require.Equal(t, "holdfast: the key holds something other than a lock of this kind\n", text)
	s.Do(t, "SET", "text", "red") // which Redis itself refuses, with the hash of a script
	for _, args := range [][]string{{"show", "text"}, {"unlock", "--yes", "text"}, {"run", "text", "--", "true"}} {
		_, text := do(t, statusRefused, s.Addr(), "", args...)
		require.Equal(t, "holdfast: the key holds something other than a lock of this kind\n", text)
	}
	asks(t, statusUsage, urlOf(s), "", "show")
	asks(t, statusUsage, urlOf(s), "", "show", "{k}")
	second.signal(syscall.SIGTERM)
	second.ends()
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := newLocker(t, s)
	_, text := asks(t, statusNo, urlOf(s), "", "unlock", "k")
	require.Contains(t, text, "free already")

	owner := locked(t, locker, "k").Owner()
	for _, no := range []string{"", "n\n", "\n", "y"} {
		out, _ := asks(t, statusNo, urlOf(s), no, "unlock", "k")
		require.Contains(t, out, owner)
		require.Contains(t, out, "\nTake it from its holder? [y/N] ")
	}
	out, _ := asks(t, 0, urlOf(s), "Y\r\n", "unlock", "k")
	require.Contains(t, out, owner+" has lost the lock\n")
	requireFree(t, s, "k")
	locked(t, newLocker(t, s), "k")
	asks(t, 0, urlOf(s), "", "unlock", "--yes", "k")
	requireFree(t, s, "k")
}

// A waiter gets the lock at once, in a queue or not.
func TestUnlockWakesTheNext(t *testing.T) {
	t.Parallel()
	for kind, of := range map[string]struct {
		open  func(rueidis.Client) (locker, error)
		tells bool // that somebody waits
	}{
		"rlock": {func(c rueidis.Client) (locker, error) { return rlock.New(c) }, false},
		"fair":  {func(c rueidis.Client) (locker, error) { return fair.New(c, fair.WithWaiterTTL(time.Minute)) }, true},
	} {
		s := redistest.Start(t)
		has := redistest.Must(of.open(s.Client(t)))(t)
		waits := redistest.Must(of.open(s.Client(t)))(t)
		locked(t, has, "k")
		got := make(chan error, 1)
		go func() {
			_, err := waits.TryLockFor(t.Context(), "k", 20*time.Second)
			got <- err
		}()
		eventually(t, func() bool {
			listen := redistest.Must(s.Do(t, "PUBSUB", "NUMSUB", "redisson_lock__channel:{k}").AsIntMap())(t)
			return number(t, s, "LLEN", "redisson_lock_queue:{k}")+listen["redisson_lock__channel:{k}"] == 1
		})
		out, _ := asks(t, 0, urlOf(s), "", "unlock", "--yes", "k")
		require.Equal(t, of.tells, strings.Contains(out, "waiting  1\n"), out)
		require.NoError(t, <-got, kind)
		require.NoError(t, waits.Close())
		require.NoError(t, has.Close())
	}
}

// The holder changes between the question and the answer.
func TestUnlockTakesNothingFromTheNextHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := newLocker(t, s)
	lease := locked(t, locker, "k")
	in, answer := io.Pipe()
	done := make(chan int)
	var out, errors strings.Builder
	asked := make(chan struct{})
	go func() {
		done <- execute([]string{"unlock", "k", "--redis", urlOf(s)}, in, writer(func(b []byte) {
			if out.Write(b); strings.Contains(string(b), "[y/N]") {
				close(asked)
			}
		}), &errors)
	}()
	<-asked
	require.NoError(t, lease.Unlock(t.Context()))
	locked(t, newLocker(t, s), "k")
	_, err := io.WriteString(answer, "y\n")
	require.NoError(t, err)
	require.Equal(t, statusNo, <-done)
	require.Contains(t, errors.String(), "another holder")
	require.EqualValues(t, 1, number(t, s, "EXISTS", "k"))
}

// writer tells f what is written.
type writer func([]byte)

func (f writer) Write(b []byte) (int, error) { f(b); return len(b), nil }
