package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Each command works on each deployment, by its URL. Servers with TLS have a certificate for
// their own name only.
func TestDeployments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(*testing.T) []string{
		"sentinel": func(t *testing.T) []string {
			var all []string
			for _, sentinel := range redistest.StartSentinel(t).Sentinels() {
				all = append(all, "addr="+sentinel.Addr())
			}
			_, first, _ := strings.Cut(all[0], "=")
			return []string{"--redis", "redis://" + first + "?master_set=" + redistest.MasterSet + "&" + strings.Join(all[1:], "&")}
		},
		"cluster": func(t *testing.T) []string {
			masters := redistest.StartCluster(t, 2, 0).Masters(t)
			return []string{"--redis", urlOf(masters[0]) + "?addr=" + masters[1].Addr()}
		},
		"TLS": func(t *testing.T) []string {
			s := startTLS(t, "127.0.0.1")
			return tlsArgs(t, s, fmt.Sprintf("rediss://127.0.0.1:%d", s.Port()))
		},
		"TLS with another name": func(t *testing.T) []string {
			s := startTLS(t, "locks.example.com")
			return append(tlsArgs(t, s, fmt.Sprintf("rediss://127.0.0.1:%d", s.Port())), "--tls-server-name", "locks.example.com")
		},
		"TLS sentinel": func(t *testing.T) []string {
			ca := redistest.NewCA(t)
			master := redistest.StartTLS(t, ca, certificate(ca, "127.0.0.1"))
			s := redistest.StartTLSSentinel(t, master, certificate(ca, "localhost"))
			return tlsArgs(t, master, fmt.Sprintf("rediss://localhost:%d?master_set=%s", s.Port(), redistest.MasterSet))
		},
		"TLS cluster": func(t *testing.T) []string {
			s := startTLS(t, "127.0.0.1", append(redistest.ClusterNode(t, "0-16383", ""), "--tls-cluster", "yes")...)
			s.AwaitClusterNode(t)
			const away = "localhost:1" // is no matter, as the next one answers
			return tlsArgs(t, s, fmt.Sprintf("rediss://%s?addr=127.0.0.1:%d", away, s.Port()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := args(t)
			p := start(t, "", append(url, ran("--wait", "1m")...)...)
			p.says("started")
			asks := func(status int, args ...string) string {
				t.Helper()
				var out, errors strings.Builder
				require.Equal(t, status, execute(append(args, url...), nil, &out, &errors), errors.String())
				return out.String()
			}
			require.Contains(t, asks(0, "ls"), key)
			require.Contains(t, asks(0, "show", key), "entries  1")
			require.Contains(t, asks(0, "unlock", "--yes", key), "has lost the lock")
			asks(statusNo, "unlock", "--yes", key)
			finds(t, append(url, "--fair", key)...)
			p.signal(syscall.SIGKILL)
		})
	}
}

func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	s := startTLS(t, "127.0.0.1")
	url := fmt.Sprintf("rediss://127.0.0.1:%d", s.Port())
	refused := func(why string, args ...string) {
		require.Eventually(t, func() bool { // a busy machine does not shake hands in time
			var errors strings.Builder
			return execute(append(args, "ls", "--redis", url), nil, io.Discard, &errors) == statusRefused && strings.Contains(errors.String(), why)
		}, redistest.Patience, time.Millisecond, why)
	}
	refused("certificate")
	refused("locks.example.com", append(tlsArgs(t, s, url), "--tls-server-name", "locks.example.com")...)
}

// What is wrong with a URL is said of its server.
func TestURLOfAnotherServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	_, text := asks(t, statusRefused, urlOf(s)+"/99", "", "show", "k")
	require.Equal(t, "holdfast: "+s.Addr()+": DB index is out of range\n", text)
	for _, address := range []string{"10.0.0.2", "::1", ":6379", "shop:secret@b:6379"} { // rueidis would take the first host
		_, text = asks(t, statusUsage, urlOf(s)+"?addr="+address, "", "show", "k")
		require.Contains(t, text, "HOST:PORT")
		require.NotContains(t, text, "secret")
	}
	for _, args := range [][]string{{"show", "k"}, {"run", "k", "--", "true"}} {
		_, text := do(t, statusRefused, "", "", append([]string{"--redis", "rediss://" + s.Addr()}, args...)...)
		require.Contains(t, text, "holdfast: "+s.Addr()+": the server does not use TLS on this port")
	}
	s.Pause() // it says nothing at all
	_, text = asks(t, statusAway, "rediss://"+s.Addr(), "", "show", "k")
	require.Contains(t, text, s.Addr()+": no answer in time")
	s.Resume()
}

func startTLS(t *testing.T, name string, args ...string) *redistest.TLSServer {
	t.Helper()
	ca := redistest.NewCA(t)
	return redistest.StartTLS(t, ca, certificate(ca, name), args...)
}

func certificate(ca *redistest.CA, name string) tls.Certificate {
	return ca.Certificate(time.Now().Add(time.Hour), name)
}

// tlsArgs are the arguments for a URL of servers with TLS. The certificate of s is good for a
// client, too.
func tlsArgs(t *testing.T, s *redistest.TLSServer, url string) []string {
	t.Helper()
	args := []string{"--redis", url}
	for flag, of := range map[string]string{"--tls-ca": "tls-ca-cert-file", "--tls-cert": "tls-cert-file", "--tls-key": "tls-key-file"} {
		file := redistest.Must(s.Do(t, "CONFIG", "GET", of).AsStrMap())(t)
		args = append(args, flag, file[of])
	}
	return args
}
