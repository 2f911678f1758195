package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestPageShowsTheLoad(t *testing.T) {
	listen := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	status, _, stderr := demotest.When(t, "Ctrl-C", func(c *exec.Cmd) {
		for _, sample := range []string{
			`holdfast_lock_acquired_total\{holdfast_how="call",holdfast_key="shoes"\} [1-9]`,
			`holdfast_lock_acquired_total\{holdfast_how="(grant|handover)",holdfast_key="concert"\} [1-9]`,
		} {
			require.Eventually(t, func() bool {
				return regexp.MustCompile(sample).MatchString(get("http://" + listen + "/metrics"))
			}, redistest.Patience, 10*time.Millisecond, sample)
		}
		demotest.Interrupt(c)
	}, "-listen", listen, "-workers", "6") // the embedded server of a slow machine serves no more
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
}

// get returns a page, or why there is none.
func get(url string) string {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

func TestBadInput(t *testing.T) {
	demotest.Fails(t, 1, "-workers: at least 1", "-workers", "0")
	demotest.Fails(t, 1, "nowhere", "-listen", "nowhere")
}
