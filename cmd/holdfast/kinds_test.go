package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

func TestSemaphores(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := urlOf(s)
	three := redistest.Must(semaphore.New(s.Client(t), 3, holdfast.WithLabel("me")))(t)
	t.Cleanup(func() { _ = three.Close() })
	one, two := locked(t, three, "exports"), locked(t, three, "exports")

	require.Regexp(t, `\nexports +semaphore +2 of 3 permits +1 +[0-9.]+s +0 +me\n$`, printed(t, url, "ls"))
	locks := fromJSON[[]lock](t, printed(t, url, "ls", "-o", "json", "exp*"))
	require.Equal(t, []any{1, "semaphore", 3, 2, one.Owner()}, []any{len(locks), locks[0].Kind, locks[0].Permits, locks[0].Taken, locks[0].Holder})

	out, _ := asks(t, 0, url, "", "show", "exports")
	require.Regexp(t, `^key +exports\nkind +semaphore\npermits +3\ntaken +2\n +1  `+one.Owner()+` \([0-9.]+s\) me\n +2  `+two.Owner()+` \([0-9.]+s\) me\n$`, out)
	out, _ = asks(t, 0, url, "", "show", "-o", "json", "exports")
	var shown struct {
		lock
		Holders []holder `json:"holders"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &shown))
	require.Equal(t, []any{3, 2, two.Owner()}, []any{shown.Permits, len(shown.Holders), shown.Holders[1].Owner})

	s.Do(t, "ACL", "SETUSER", "default", "resetkeys", "~exports", "~redisson_*", "~holdfast_heartbeat:*", "~holdfast_gone:*")
	_, text := asks(t, statusRefused, url, "", "show", "exports")
	require.Contains(t, text, "NOPERM") // of its permits, and not that it is no lock
	s.Do(t, "ACL", "SETUSER", "default", "allkeys")

	_, text = asks(t, statusRefused, url, "", "run", "--redis", url, "--try", "--permits", "5", "exports", "--", "true")
	require.Contains(t, text, "5 permits wanted, but others use the key with 3")
	asks(t, 0, url, "", "resize", "exports", "2")
	asks(t, statusNotAcquired, url, "", "run", "--redis", url, "--try", "--permits", "5", "exports", "--", "true")
	asks(t, 0, url, "", "resize", "exports", "4")
	require.Contains(t, printed(t, url, "show", "exports"), "permits  4\ntaken    2\n")

	out, text = asks(t, statusNo, url, "n\n", "unlock", "exports")
	require.Contains(t, out, "\nTake it from all 2 holders? [y/N] ")
	require.Contains(t, text, "nothing was done")
	out, _ = asks(t, 0, url, "", "unlock", "--yes", "exports")
	both := []string{one.Owner(), two.Owner()}
	slices.Sort(both)
	require.Contains(t, out, strings.Join(both, ", ")+" has lost the lock\n")
	asks(t, statusNo, url, "", "unlock", "--yes", "exports")
	require.NotContains(t, printed(t, url, "ls"), "exports")
	require.Contains(t, printed(t, url, "show", "exports"), "permits  4\ntaken    0\n")

	for _, args := range [][]string{
		{"resize", "exports"}, {"resize", "exports", "x"}, {"resize", "exports", "0"}, {"resize", "", "1"},
		{"run", "--permits", "0", "k", "--", "true"}, {"run", "--permits", "10001", "k", "--", "true"},
		{"run", "--permits", "2", "--fair", "k", "--", "true"}, {"run", "--permits", "2", "--fence-env", "F", "k", "--", "true"},
	} {
		asks(t, statusUsage, url, "", args...)
	}
}

// Each right that docs/acl.md names for semaphores is missed if it is not there.
func TestDoctorFindsMissingRightsOfSemaphores(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "it does not tell rights")
	plain, _, _, _ := aclUsers(t)
	page := redistest.Must(os.ReadFile("../../docs/acl.md"))(t)
	ours := strings.Fields(string(regexp.MustCompile("(?m)^~holdfast_permits:.*$").Find(page)))
	require.NotEmpty(t, ours)
	s := redistest.Start(t, healthy...)
	args := append(asShop(t, s), "--permits", "sku:42")
	lacks := func(words []string) (found []string) {
		s.Do(t, "ACL", "DELUSER", "shop")
		s.Do(t, slices.Concat(plain, strings.Fields(ofDoctor), words)...)
		for _, f := range finds(t, args...) {
			found = append(found, f.Found)
		}
		return found
	}
	all := func(without string) []string {
		return slices.DeleteFunc(slices.Clone(ours), func(word string) bool { return word == without })
	}
	require.Contains(t, strings.Join(lacks(nil), "\n"), "+zadd", "the user has ~sku:*")
	require.NotContains(t, strings.Join(lacks(nil), "\n"), "~sku:42")
	found := finds(t, args...)[0]
	require.Contains(t, found.Found, "+zadd")
	require.True(t, found.Hurts, "although fair locks lack it, too")
	enough := lacks(ours)
	for _, word := range ours {
		if word == "~holdfast_permits_channel:*" { // of a Redis Cluster
			continue
		}
		require.Contains(t, strings.Join(lacks(all(word)), "\n"), "the user lacks "+word, word)
		require.NotContains(t, strings.Join(enough, "\n"), word)
	}
}

func newReadWrite(t *testing.T, s *redistest.Server) *rwlock.Locker {
	t.Helper()
	l := redistest.Must(rwlock.New(s.Client(t), holdfast.WithLabel("me")))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestReadWriteLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := urlOf(s)
	one, two := newReadWrite(t, s), newReadWrite(t, s)
	reads := locked(t, readers{one.RLocker(), one}, "catalogue")
	locked(t, readers{two.RLocker(), two}, "catalogue")
	writes := locked(t, one, "prices")
	locked(t, newLocker(t, s), "other")

	require.Regexp(t, `\ncatalogue +rwlock +read by 2 +1 +[0-9.]+s +0 +me\nother +lock .*\nprices +rwlock +`+writes.Owner()+` +1 +[0-9.]+s +0 +me\n$`, printed(t, url, "ls"))
	locks := fromJSON[[]lock](t, printed(t, url, "ls", "-o", "json", "cat*"))
	require.Len(t, locks, 1)
	locks[0].RemainingMS = 0
	require.Equal(t, lock{Key: "catalogue", Kind: "rwlock", Holder: reads.Owner(), Library: "holdfast", Label: "me", Entries: 1, Mode: "read", Readers: 2}, locks[0])

	out, _ := asks(t, 0, url, "", "show", "catalogue")
	require.Regexp(t, `^key +catalogue\nkind +rwlock\nmode +read\nreaders +2\nholder +`+reads.Owner()+` \(holdfast\)\nlabel +me\nentries +1\nleft +[0-9.]+s\n$`, out)
	require.Contains(t, printed(t, url, "show", "prices"), "mode     write\nreaders  0\nholder   "+writes.Owner()+" (holdfast)\nlabel    me\n")
	shown := fromJSON[lock](t, printed(t, url, "show", "-o", "json", "prices"))
	require.Equal(t, []any{"write", 0, writes.Owner()}, []any{shown.Mode, shown.Readers, shown.Holder})

	out, text := asks(t, statusNo, url, "n\n", "unlock", "catalogue")
	require.Contains(t, out, "\nTake it from all 2 holders? [y/N] ")
	require.Contains(t, text, "nothing was done")
	out, _ = asks(t, 0, url, "y\n", "unlock", "catalogue")
	require.Contains(t, out, reads.Owner()+" has lost the lock, and so have 1 other readers\n")
	require.Contains(t, printed(t, url, "unlock", "--yes", "prices"), writes.Owner()+" has lost the lock\n")
	asks(t, statusNo, url, "", "unlock", "--yes", "prices")
	requireFree(t, s, "prices")

	for _, flags := range []string{"--read --write", "--read --fair", "--write --fair", "--read --permits 2"} {
		asks(t, statusUsage, url, "", slices.Concat([]string{"run"}, strings.Fields(flags), []string{"k", "--", "true"})...)
	}
}

// Readers run beside readers, and a writer runs alone.
func TestRunReadAndWrite(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first, second := started(t, s.Addr(), "--read"), started(t, s.Addr(), "--read")
	do(t, statusNotAcquired, s.Addr(), "", ran("--write", "--try")...)
	do(t, statusRefused, s.Addr(), "", ran("--try")...) // rlock takes no read/write lock
	third := start(t, s.Addr(), ran("--write", "--fence-env", "FENCE")...)
	eventually(t, func() bool { return number(t, s, "EXISTS", "holdfast_wishes:{"+key+"}") == 1 })
	for _, p := range []*program{first, second} {
		p.write("exit 0").exits(0)
	}
	third.says("started")
	for _, flag := range []string{"--read", "--write"} {
		do(t, statusNotAcquired, s.Addr(), "", ran(flag, "--try")...)
	}
	third.write("exit 0").exits(0)
	requireFree(t, s, key)
}

// Who may use rlock alone lists its locks, and is refused a read/write lock.
func TestListWithoutTheRightsOfReadWriteLocks(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "its rights differ")
	plain, fair, _, _ := aclUsers(t)
	s := redistest.Start(t)
	s.Do(t, slices.Concat(plain, fair, []string{"+scan"})...)
	locked(t, newLocker(t, s), "sku:1")
	locked(t, newReadWrite(t, s), "sku:2")
	args := asShop(t, s)
	url, args := args[len(args)-1], args[:len(args)-2]
	out, _ := asks(t, 0, url, "", append([]string{"ls", "sku:*"}, args...)...)
	require.Contains(t, out, "\nsku:1 ")
	require.NotContains(t, out, "sku:2")
	_, text := asks(t, statusRefused, url, "", append([]string{"show", "sku:2"}, args...)...)
	require.Contains(t, text, `inspect "sku:2"`)
}
