package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rwlock"
)

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
