package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	s := redistest.StartTLS(t, ca, ca.Certificate(time.Now().Add(time.Hour), "127.0.0.1"))
	address := rueidis.ClientOption{}
	s.Option(nil)(&address)
	url := "rediss://" + address.InitAddress[0]
	args := []string{"ls"}
	for flag, of := range map[string]string{"--tls-ca": "tls-ca-cert-file", "--tls-cert": "tls-cert-file", "--tls-key": "tls-key-file"} {
		m := s.Do(t, "CONFIG", "GET", of)
		file, err := m.AsStrMap()
		require.NoError(t, err)
		args = append(args, flag, file[of]) // the server's certificate is good for a client, too
	}
	asks(t, 0, url, "", args...)
	_, text := asks(t, statusRefused, url, "", "ls")
	require.Contains(t, text, "certificate")
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	var all []string
	for _, sentinel := range s.Sentinels() {
		all = append(all, "addr="+sentinel.Addr())
	}
	url := urlOf(s.Sentinels()[0]) + "?master_set=" + redistest.MasterSet + "&" + strings.Join(all[1:], "&")
	p := start(t, "", append([]string{"--redis", url}, ran("--try")...)...)
	p.says("started")
	out, _ := asks(t, 0, url, "", "ls")
	require.Contains(t, out, key)
	p.write("exit 0")
	p.exits(0)
}
