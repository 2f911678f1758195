package httpholdfast

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// What has not been sent is no answer.
func TestWriterThatCannotFlush(t *testing.T) {
	type plain struct{ http.ResponseWriter } // without the Flush of the recorder
	w := &writer{ResponseWriter: plain{httptest.NewRecorder()}}
	require.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
	require.False(t, w.answered)
}
