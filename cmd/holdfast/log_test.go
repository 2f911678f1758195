package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What a locker warns of is on standard error, and why a lease was lost.
func TestRunTellsWhyRenewalsFail(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	p := start(t, proxy.Addr(), ran("--lease", "3s")...)
	p.says("started")
	proxy.Refuse(true)
	proxy.Cut()
	p.says("got terminated")
	p.write("exit 0").exits(statusLost)
	text := p.err.String()
	require.Regexp(t, `(?m)^holdfast: renewal failed; leases: 1; error: redis unavailable: .*refused`, text)
	require.Regexp(t, `(?m)^holdfast: lease of "`+key+`": lease lost: the lease ran out; its last renewal: redis unavailable: .*; ending the command$`, text)
	require.Equal(t, 1, strings.Count(text, "ending the command"), text)
	for line := range strings.Lines(text) {
		require.True(t, strings.HasPrefix(line, "holdfast: "), line)
	}
}

func TestWarnings(t *testing.T) {
	var to strings.Builder
	log := slog.New(warnings{&to})
	log.Info("holdfast: nothing to see")
	log.Warn("holdfast: lease lost", "key", "k") // run tells it itself
	log.Warn("holdfast: clean-up failed", "keys", 1, "after", time.Second)
	log.Warn("pubsub: connection lost")
	require.Equal(t, "holdfast: clean-up failed; keys: 1; after: 1s\nholdfast: pubsub: connection lost\n", to.String())
}
