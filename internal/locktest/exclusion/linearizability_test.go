package exclusion

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

func TestLockModel(t *testing.T) {
	at := func(what happening, lease int, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: event{key: "k", what: what, lease: lease}, Call: from, Return: to}
	}
	cases := map[string]struct {
		history []porcupine.Operation
		ok      bool
	}{
		"one after the other": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasReleased, 1, 2, 3), at(wasAcquired, 2, 4, 5),
		}, true},
		"waiting": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasAcquired, 2, 0, 4), at(wasReleased, 1, 2, 5),
		}, true},
		"two at once": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasAcquired, 2, 2, 3), at(wasReleased, 1, 4, 5),
		}, false},
		"after an expiry": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(hasExpired, 1, 5, 9), at(wasAcquired, 2, 2, 6),
		}, true},
		"before an expiry": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(hasExpired, 1, 5, 9), at(wasAcquired, 2, 2, 4),
		}, false},
		"refused by a holder": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasRefused, 0, 2, 5), at(wasReleased, 1, 3, 4),
		}, true},
		"refused without a holder": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasReleased, 1, 2, 3), at(wasRefused, 0, 4, 5),
		}, false},
		"released by another": {[]porcupine.Operation{
			at(wasAcquired, 1, 0, 1), at(wasReleased, 2, 2, 3),
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.ok, porcupine.CheckOperations(lockModel, c.history))
		})
	}
}
