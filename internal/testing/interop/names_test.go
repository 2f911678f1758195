package interop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both sides build the names of queues, channels and counters alike, whatever the
// name of the lock: else the other would not be woken.
func testNames(t *testing.T, s redis, agents []*agent) {
	keys := []string{
		"{tag}:rest", "a{tag}b", "{{tag}}", "{tag}}{}", "with a space", " ", "a:b:c", "%d \\ \" '", "schlüssel", "鍵🔑", "key*?[x]",
	}
	if !s.clustered() { // where Go refuses these
		keys = append(keys, "a{b", "a}b", "}{", "{}", "{")
	}
	for _, key := range keys {
		for _, kind := range allKinds {
			t.Run(fmt.Sprintf("%q/%s", key, kind), func(t *testing.T) {
				for i, a := range agents {
					b := agents[1-i]
					here, there := a.hand(t, key+kind, kind, key), b.hand(t, key+kind, kind, key)
					token := here.lock().Number
					wait := there.waits()
					awaitWaiters(t, s, kind, key, 1)
					there.otherThread().sees(here.do(t, here.command("held")).Text, 1)
					here.unlock()
					require.Equal(t, kind == "fenced", got(t, wait).Number > token)
					there.unlock()
					tidy(t, s, key)
				}
			})
		}
	}
}
