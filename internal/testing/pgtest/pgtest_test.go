package pgtest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStart(t *testing.T) {
	var dir string
	t.Run("serves", func(t *testing.T) {
		address := redistest.Must(url.Parse(Start(t)))(t)
		dir = address.Query().Get("host")
		out, err := exec.Command(filepath.Join(redistest.Must(programs())(t), "pg_isready"), "-h", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}
