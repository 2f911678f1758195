package holdfast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

func TestStatus_String(t *testing.T) {
	for text, s := range map[string]holdfast.Status{
		"free, 2 waiting": {Waiting: 2},
		"held, entries: 1, remaining: 3s, waiting: 0":      {Held: true, Entries: 1, Remaining: 3 * time.Second},
		"held, entries: 1, remaining: no end, waiting: 0":  {Held: true, Entries: 1, Remaining: -1},
		"held in mode read, readers: 1, remaining: no end": {Held: true, Mode: "read", Readers: 1, Remaining: -1},
	} {
		require.Equal(t, text, s.String())
	}
}
