package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A password changes, and then every connection is cut: a job that runs keeps its lock, one that
// waits gets it, and a list goes on.
func TestF39_PasswordIsReadAtEachDial(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "old")
	file := filepath.Join(t.TempDir(), "password")
	password := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	password("old\n")
	startIt := func(args ...string) *program {
		return start(t, s.Addr(), append([]string{"--password-file", file}, args...)...)
	}
	first := startIt(ran("--fair", "--lease", "15s")...)
	first.says("started")
	second := startIt(ran("--fair")...)
	awaitQueue(t, s, 1)
	list := startIt("ls", "--watch=10ms", "-o", "json")
	lists := func() {
		t.Helper()
		require.True(t, list.out.Scan(), list.err.String())
		require.Contains(t, list.out.Text(), key)
	}
	lists()

	password("new\n")
	s.Do(t, "CONFIG", "SET", "requirepass", "new")
	password("") // half written: the last one serves
	s.Do(t, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "pubsub")
	password("new\nmore")
	s.Do(t, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
	awaitRenewal(t, s)
	for range 3 {
		lists()
	}
	first.write("exit 5").exits(5)
	second.says("started")
	second.write("exit 0").exits(0)
	requireFree(t, s, key)
}

// awaitRenewal waits for the next renewal of a lease.
func awaitRenewal(t *testing.T, s *redistest.Server) {
	t.Helper()
	left := number(t, s, "PTTL", key)
	eventually(t, func() bool {
		before := left
		left = number(t, s, "PTTL", key)
		return left > before
	})
}

// The authority of clients' certificates changes.
func TestF39_CertificateIsReadAtEachDial(t *testing.T) {
	t.Parallel()
	ca, next, dir := redistest.NewCA(t), redistest.NewCA(t), t.TempDir()
	s := redistest.StartTLS(t, ca, certificate(ca, "127.0.0.1"))
	args := tlsArgs(t, s, fmt.Sprintf("rediss://127.0.0.1:%d", s.Port()))
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, kind string, der []byte) {
		require.NoError(t, os.WriteFile(file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	show := func(of tls.Certificate) {
		private := redistest.Must(x509.MarshalPKCS8PrivateKey(of.PrivateKey))(t)
		write("cert", "CERTIFICATE", of.Certificate[0])
		write("key", "PRIVATE KEY", private)
	}
	show(certificate(ca, "client"))
	p := start(t, "", append(append(args, "--tls-cert", file("cert"), "--tls-key", file("key")), ran("--lease", "15s")...)...)
	p.says("started")

	show(certificate(next, "client"))
	write("ca", "CERTIFICATE", next.Root())
	s.Do(t, "CONFIG", "SET", "tls-ca-cert-file", file("ca"))
	s.Do(t, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
	awaitRenewal(t, s.Server)
	p.write("exit 5").exits(5)
	requireFree(t, s.Server, key)
}

// A file of which a half is new, or that is away, does not end what runs.
func TestSecretsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	read := func() (string, error) { return firstLine(file) }
	_, err := readSecret("--flag", read)
	require.ErrorContains(t, err, "--flag: open "+file)
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("")
	password := redistest.Must(readSecret("--flag", read))(t)
	for _, c := range [][2]string{{"", ""}, {"a\r\nb\n", "a"}, {"", "a"}, {"c", "c"}, {"\n", "c"}} {
		write(c[0])
		require.Equal(t, c[1], password.now())
	}
	require.NoError(t, os.Remove(file))
	require.Equal(t, "c", password.now())

	first := certificate(redistest.NewCA(t), "client")
	pair := &secret[*tls.Certificate]{read: func() (*tls.Certificate, error) { return pairOf(file, file) }, last: &first}
	require.Same(t, &first, pair.now())
}

// The Sentinels keep their own password.
func TestSentinelsDoNotGetThePasswordOfTheServer(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	for _, one := range s.Sentinels() {
		one.Do(t, "ACL", "SETUSER", "default", "resetpass", ">of-sentinels")
	}
	s.Master().Do(t, "CONFIG", "SET", "requirepass", "of-servers")
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("of-servers"), 0o600))
	address := s.Sentinels()[0].Addr()
	c := command(t, "", append([]string{"--password-file", file}, ran("--try")...)...)
	c.Env = append(c.Env, envURL+"=redis://"+address+"?master_set="+redistest.MasterSet, envSentinelPassword+"=of-sentinels")
	p := startCommand(t, c)
	p.says("started")
	p.write("exit 0").exits(0)
	require.NotContains(t, p.err.String(), "WRONGPASS")
	require.False(t, strings.Contains(p.err.String(), "of-servers"))
}
