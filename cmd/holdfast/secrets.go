package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Secrets change while holdfast runs, so each dial reads them from their files again. If a
// file cannot be read at that moment, or is empty, the last ones that were read are
// used.

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
