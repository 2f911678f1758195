package interop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// Tokens grow from hold to hold, whichever language holds, over re-entries and a
// counter that Java has begun at 1.
func TestFence(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for name, order := range map[string][]string{
		"JavaFirst": {inJava, inJava, inGo, inJava, inGo, inGo, inJava},
		"GoFirst":   {inGo, inJava, inJava, inGo, inJava},
	} {
		for _, kind := range []string{"fenced", "fair fenced"} { // Java's fenced lock is not fair: they take turns here
			t.Run(name+"/"+kind, func(t *testing.T) {
				key := t.Name()
				last := int64(0)
				for i, lang := range order {
					h := agents[0].hand(t, key, kind, key)
					if lang == inJava {
						h = agents[1].hand(t, key, "fenced", key)
					}
					token := h.lock().Number
					require.Greater(t, token, last, "%d: %s", i, lang)
					last = token
					again := h.lock().Number // Java's grows here, too; Go's belongs to the hold
					require.GreaterOrEqual(t, again, last)
					last = again
					counter := locktest.OfKey("redisson_lock_token", key)
					require.EqualValues(t, -1, number(t, s, "PTTL", counter), "a counter that Java needs has no end")
					require.Equal(t, last, locktest.Must(s.of(t, counter).Do(t, "GET", counter).AsInt64())(t))
					h.unlock()
					h.unlock()
				}
				require.Greater(t, last, int64(1e15), "Go's numbers follow the clock in µs")
				tidy(t, s, key)
			})
		}
	}
}
