package contract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// FuzzKeys requires that any bytes make a key: it is taken, nested, seen, refused
// to others, handed on by message and given back, and nothing else is touched.
// Only an empty or over-long key is refused, and one whose names are another's.
func FuzzKeys(f *testing.F, d Kind) {
	for _, key := range []string{
		"", "k", "sku:42", "a b", "{a}b", "a{b}c", "{}", "{", "}", "}{", "{{a}}", "*", "[a-z]?", "%s%d", "\\", "\"", "\x00",
		"\r\n", "*1\r\n$8\r\nFLUSHALL\r\n", "ключ", "\xff\xfe", "redisson_lock_token:{k}", "holdfast_gone:{k}:1", "{k}", "holdfast_node",
		strings.Repeat("a", 1024), strings.Repeat("a", 1025),
	} {
		f.Add(key)
	}
	s := redistest.Start(f)
	locker := d.Open(f, s.Client(f), Options{Lease: Long})
	other := d.Open(f, s.Client(f), Options{Lease: Long})
	f.Fuzz(func(t *testing.T, key string) {
		ctx := Bounded(t)
		if scripts.CheckKey(key) != nil {
			_, err := locker.Lock(ctx, key)
			RequireSentinel(t, err, holdfast.ErrInvalidArgument)
			_, err = locker.Inspect(ctx, key)
			RequireSentinel(t, err, holdfast.ErrInvalidArgument)
			require.Zero(t, Number(t, s, "DBSIZE"))
			return
		}
		s.Do(t, "SET", "neighbour of "+key, "untouched")
		l := Lock(t, locker, ctx, key)
		require.Equal(t, key, l.Key())
		inside := Lock(t, locker, l.Bind(ctx), key)
		entries := s.Do(t, "HGET", key, l.Owner())
		text, err := entries.ToString()
		require.NoError(t, err)
		require.Regexp(t, "^2 ", text)
		held, err := other.Inspect(ctx, key)
		require.NoError(t, err)
		require.True(t, held.Held)
		require.Equal(t, l.Owner(), held.Owner)
		require.Equal(t, 2, held.Entries)

		waiting := GoLock(other, ctx, key)
		Await(t, func() bool { return d.Waiting(t, s, key) == 1 })
		require.NoError(t, inside.Unlock(ctx))
		require.NoError(t, l.Unlock(ctx))
		require.NoError(t, Got(t, waiting).Unlock(ctx))

		require.Equal(t, 1, Number(t, s, "DEL", "neighbour of "+key))
		for d.Fair && Number(t, s, "DBSIZE") > 0 { // but heartbeats, of which one may be still on its way
			require.Equal(t, 1, Number(t, s, "DBSIZE"))
			require.Equal(t, 1, Number(t, s, "DEL", OfKey("holdfast_heartbeat", key)))
		}
		require.Zero(t, Number(t, s, "DBSIZE"))
	})
}
