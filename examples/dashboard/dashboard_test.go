package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestPageShowsTheLoad(t *testing.T) {
	listen := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	c, out, stderr := demotest.Start(t, "Ctrl-C", "-listen", listen)
	page := ""
	for _, sample := range []string{
		`holdfast_lock_acquired_total\{holdfast_how="call",holdfast_key="shoes"\} [1-9]`,
		`holdfast_lock_refused_total\{error_type="not_acquired",holdfast_key="concert"\} [1-9]`,
	} {
		require.Eventually(t, func() bool {
			page = get(t, "http://"+listen+"/metrics")
			return regexp.MustCompile(sample).MatchString(page)
		}, 20*time.Second, 10*time.Millisecond, page)
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	_, err := io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, c.Wait())
	require.Empty(t, stderr.String())
}

func get(t *testing.T, url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

func TestBadInput(t *testing.T) {
	for _, args := range [][]string{{"-workers", "0"}, {"-listen", "nowhere"}} {
		status, _, stderr := demotest.Run(t, args...)
		require.Equal(t, 1, status)
		require.NotContains(t, stderr, "panic")
	}
}
