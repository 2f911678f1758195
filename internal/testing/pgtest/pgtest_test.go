package pgtest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStart(t *testing.T) {
	var dir string
	t.Run("serves", func(t *testing.T) {
		address, err := url.Parse(Start(t))
		require.NoError(t, err)
		dir = address.Query().Get("host")
		bin, err := programs()
		require.NoError(t, err)
		out, err := exec.Command(filepath.Join(bin, "pg_isready"), "-h", dir).CombinedOutput()
		require.NoError(t, err, string(out))
	})
	_, err := os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}
