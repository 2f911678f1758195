package rwlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rwlock"
)

func userLocker(t testing.TB, s *redistest.Server, opts ...holdfast.Option) *rwlock.Locker {
	l, err := rwlock.New(s.Client(t), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// waits is how many processes wait for key as that: writer, reader or next.
func waits(t testing.TB, s *redistest.Server, key, as string) (n int) {
	for _, field := range locktest.Strings(t, s, "HKEYS", "holdfast_wishes:{"+key+"}") {
		if strings.HasPrefix(field, as+" ") {
			n++
		}
	}
	return n
}
