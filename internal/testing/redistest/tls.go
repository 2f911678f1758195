package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// CA is a certificate authority for one test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes one.
func NewCA(t testing.TB) *CA {
	t.Helper()
	c := &CA{t: t}
	self := c.template(time.Now().Add(time.Hour))
	self.IsCA, self.BasicConstraintsValid, self.KeyUsage = true, true, x509.KeyUsageCertSign
	c.cert, c.key = c.issue(self)
	return c
}

// Certificate issues one for a server or a client with these names, which are host names or
// IP addresses. It is valid until the given time.
func (c *CA) Certificate(until time.Time, names ...string) tls.Certificate {
	c.t.Helper()
	template := c.template(until)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, key := c.issue(template)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// Root is the certificate of c itself, as DER.
func (c *CA) Root() []byte { return c.cert.Raw }

func (c *CA) template(until time.Time) *x509.Certificate {
	serial := Must(rand.Int(rand.Reader, big.NewInt(1<<62)))(c.t)
	return &x509.Certificate{
		Subject:      pkix.Name{CommonName: serial.String()},
		SerialNumber: serial, NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
	}
}

// issue signs a certificate with a key of its own; the first one, by itself.
func (c *CA) issue(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	c.t.Helper()
	key := Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(c.t)
	parent, signer := c.cert, c.key
	if parent == nil {
		parent, signer = template, key
	}
	raw := Must(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(c.t)
	return Must(x509.ParseCertificate(raw))(c.t), key
}

// TLSServer is a server with a port for TLS beside its plain one, which is left to the
// administrator. It serves only clients with a certificate of its authority.
type TLSServer struct {
	*Server
	ca    *CA
	files string // directory of the certificates
	port  int
}

// StartTLS starts one that shows cert, with the arguments of [Start]. Where the program was
// built without TLS, the test is skipped, or fails if the environment variable CI is "true" and
// REDIS_SERVER did not choose the program.
func StartTLS(t testing.TB, ca *CA, cert tls.Certificate, args ...string) *TLSServer {
	t.Helper()
	s := newTLS(t, ca, cert)
	s.Server = Start(t, append(s.args(), args...)...)
	return s
}

// StartTLSSentinel starts a Sentinel for master, with a certificate of its own. It is alone:
// it never fails over, but it says where the master is.
func StartTLSSentinel(t testing.TB, master *TLSServer, cert tls.Certificate) *TLSServer {
	t.Helper()
	s := newTLS(t, master.ca, cert)
	s.Server = startSentinel(t, append(s.args(), "--tls-replication", "yes")...)
	s.Do(t, "SENTINEL", "MONITOR", MasterSet, "127.0.0.1", strconv.Itoa(master.port), "2")
	return s
}

func newTLS(t testing.TB, ca *CA, cert tls.Certificate) *TLSServer {
	t.Helper()
	if _, err := exec.LookPath(program()); err == nil && !hasTLS() {
		if os.Getenv("CI") == "true" && os.Getenv("REDIS_SERVER") == "" {
			t.Fatalf("redistest: %s was built without TLS", program())
		}
		t.Skipf("redistest: %s was built without TLS", program())
	}
	s := &TLSServer{ca: ca, files: t.TempDir(), port: FreePort(t)}
	s.show(cert)
	return s
}

func (s *TLSServer) args() []string {
	return []string{"--tls-port", strconv.Itoa(s.port), "--tls-auth-clients", "yes",
		"--tls-cert-file", s.file("cert"), "--tls-key-file", s.file("key"), "--tls-ca-cert-file", s.file("ca")}
}

// Port is the one for TLS.
func (s *TLSServer) Port() int { return s.port }

// hasTLS reports whether the program knows TLS. It ends immediately in any case, for want of a
// certificate or of TLS.
var hasTLS = sync.OnceValue(func() bool {
	output, _ := exec.Command(program(), "--port", "0", "--tls-port", "1").CombinedOutput()
	return strings.Contains(string(output), "tls-cert-file")
})

// Config is that of a client of the server, with a certificate.
func (s *TLSServer) Config() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(s.ca.cert)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{s.ca.Certificate(time.Now().Add(time.Hour))}}
}

// Option has a client use the TLS port with this configuration.
func (s *TLSServer) Option(c *tls.Config) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) {
		o.InitAddress, o.TLSConfig = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))}, c
	}
}

// RestartWith is Restart with another certificate.
func (s *TLSServer) RestartWith(cert tls.Certificate) {
	s.show(cert)
	s.Restart()
}

// show writes the files that the server reads when it starts.
func (s *TLSServer) show(cert tls.Certificate) {
	key := Must(x509.MarshalPKCS8PrivateKey(cert.PrivateKey))(s.ca.t)
	for name, b := range map[string]*pem.Block{
		"cert": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"key":  {Type: "PRIVATE KEY", Bytes: key},
		"ca":   {Type: "CERTIFICATE", Bytes: s.ca.cert.Raw},
	} {
		require.NoError(s.ca.t, os.WriteFile(s.file(name), pem.EncodeToMemory(b), 0o600))
	}
}

func (s *TLSServer) file(name string) string { return filepath.Join(s.files, name+".pem") }
