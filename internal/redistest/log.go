package redistest

import (
	"bytes"
	"strings"
	"sync"
)

// Log collects what a logger or a process writes. Its zero value is ready for use. Safe
// for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often s has been written.
func (l *Log) Count(s string) int { return strings.Count(l.String(), s) }
