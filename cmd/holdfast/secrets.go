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

// secret is what some files have.
type secret[T comparable] struct {
	read func() (T, error)
	mu   sync.Mutex
	last T // guarded by mu
}

// readSecret reads the files for the first time. Its errors name the flags that say which.
func readSecret[T comparable](flags string, read func() (T, error)) (*secret[T], error) {
	last, err := read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags, err)
	}
	return &secret[T]{read: read, last: last}, nil
}

func (s *secret[T]) now() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, err := s.read(); err == nil && now != *new(T) {
		s.last = now
	}
	return s.last
}

func firstLine(name string) (string, error) {
	text, err := os.ReadFile(name)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

func pairOf(cert, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	return &pair, err
}
