package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// Secrets change while holdfast runs, so each dial reads them from their files again. Where a
// file cannot be read at that moment, or is half written, the last ones that were read serve.

// passwordFile is a file with a password.
type passwordFile struct {
	name string
	mu   sync.Mutex
	last string // guarded by mu
}

// readPassword reads the file for the first time.
func readPassword(name string) (*passwordFile, error) {
	p := &passwordFile{name: name}
	var err error
	if p.last, err = firstLine(name); err != nil {
		return nil, fmt.Errorf("--password-file: %w", err)
	}
	return p, nil
}

func firstLine(name string) (string, error) {
	text, err := os.ReadFile(name)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

func (p *passwordFile) password() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now, err := firstLine(p.name); err == nil && now != "" {
		p.last = now
	}
	return p.last
}

// pairFiles are the files of a certificate and its key.
type pairFiles struct {
	cert, key string
	mu        sync.Mutex
	last      tls.Certificate // guarded by mu
}

// readPair reads the files for the first time.
func readPair(cert, key string) (*pairFiles, error) {
	p := &pairFiles{cert: cert, key: key}
	var err error
	if p.last, err = tls.LoadX509KeyPair(cert, key); err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return p, nil
}

func (p *pairFiles) pair(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now, err := tls.LoadX509KeyPair(p.cert, p.key); err == nil {
		p.last = now
	}
	pair := p.last
	return &pair, nil
}

// rotate has a client read the password for each dial. rueidis asks for that of a Sentinel in the
// same way: only the address tells the two apart.
func rotate(o *rueidis.ClientOption, p *passwordFile) {
	user, sentinel := o.Username, o.Sentinel
	o.AuthCredentialsFn = func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if _, is := of.Address.(sentinelAddr); is {
			return rueidis.AuthCredentials{Username: sentinel.Username, Password: sentinel.Password}, nil
		}
		return rueidis.AuthCredentials{Username: user, Password: p.password()}, nil
	}
	if o.Sentinel.MasterSet != "" {
		o.DialCtxFn = dialMarked
	}
}

// ofSentinel marks the dialer of Sentinels; it resolves as none does.
var ofSentinel = &net.Resolver{}

// dialMarked dials as rueidis does, and marks connections to Sentinels.
func dialMarked(ctx context.Context, address string, d *net.Dialer, c *tls.Config) (conn net.Conn, err error) {
	if c != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = d.DialContext(ctx, "tcp", address)
	}
	if err == nil && d.Resolver == ofSentinel {
		conn = sentinelConn{conn}
	}
	return conn, err
}

type sentinelConn struct{ net.Conn }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

type sentinelAddr struct{ net.Addr }
