package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestGoAndJavaSellWhatThereIs(t *testing.T) {
	if os.Getenv("INTEROP") != "1" {
		t.Skip("make test-interop runs it")
	}
	status, stdout, stderr := demotest.Run(t)
	require.Zero(t, status, stdout+stderr)
	require.Positive(t, demotest.Number(t, stdout, `Go sold (\d+)`), stdout)
	require.Positive(t, demotest.Number(t, stdout, `Java sold (\d+)`), stdout)
}

func TestBadInput(t *testing.T) {
	demotest.Fails(t, 1, "at least 1", "-items", "0")
}
