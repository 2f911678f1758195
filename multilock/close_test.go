package multilock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
)

// Nodes refuse the release, all or one of three. For a while: Close goes on until it is done. For
// good: Close says so, though the lock is free if it was one.
func TestCloseRepeatsWhatNodesRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		from int
		long time.Duration // 0: for good
	}{"one, for a while": {2, time.Second}, "one": {2, 0}, "all, for a while": {0, time.Second}, "all": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, 3, func(w world) {
				l := w.open(0)
				w.vote(l)
				w.lock(l, "k")
				settle()
				for _, s := range w.Servers[c.from:] {
					s.Refuse("NOPERM No permissions to access a key")
					if c.long > 0 {
						time.AfterFunc(c.long, func() { s.Refuse("") })
					}
				}
				err := l.Close()
				if c.long > 0 {
					require.NoError(w, err)
					require.Equal(w, []string{"", "", ""}, w.owners("k"))
					return
				}
				require.ErrorIs(w, err, holdfast.ErrUnknown)
				require.ErrorContains(w, err, `"k": `)
				require.ErrorContains(w, err, w.Links[0][2].Addr()+": NOPERM")
				require.Equal(w, c.from > 0, w.owners("k")[0] == "")
			})
		})
	}
}

// A node that has been dead for longer than a lease has nothing of a hold any more: Close does not
// wait for it, and names no key.
func TestCloseWaitsForNoNodeThatIsLongDead(t *testing.T) {
	inWorld(t, 1, 3, func(w world) {
		l := w.open(0, multilock.WithoutRestartGuard())
		lease := w.lock(l, "k")
		settle()
		w.Servers[2].Kill()
		time.Sleep(5 * time.Minute)
		require.NoError(w, lease.Err())
		began := time.Now()
		require.NoError(w, l.Close())
		require.Less(w, time.Since(began), time.Second)
	})
}

// A program closes the client of one node before the locker, which then cannot release anything
// there: Close names the key, at once. If the client was closed before the lock, nothing is left
// there, and Close names none.
func TestCloseTellsOfAClosedClient(t *testing.T) {
	for _, before := range []bool{false, true} {
		inWorld(t, 1, 3, func(w world) {
			clients := w.Clients(0)
			l := w.on(clients, multilock.WithoutRestartGuard())
			if before {
				clients[2].Close()
			}
			w.lock(l, "k")
			settle()
			require.Equal(w, before, w.owners("k")[2] == "")
			clients[2].Close()
			began := time.Now()
			err := l.Close()
			require.Less(w, time.Since(began), time.Second)
			if before {
				require.NoError(w, err)
				return
			}
			require.ErrorIs(w, err, holdfast.ErrUnknown)
			require.ErrorContains(w, err, `"k": `+w.Links[0][2].Addr()+": "+rueidis.ErrClosing.Error())
		})
	}
}
