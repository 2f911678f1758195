package main

import (
	"os"
	"path/filepath"
	"sync/atomic"
)

// insideSize is the bytes of a number that processes share.
const insideSize = 8

// insideFile makes a file in which the processes of a crew count who is inside: one
// at a time. It may be removed when all of them have mapped it.
func insideFile() (path string, remove func(), err error) {
	dir, err := memoryDir()
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // a few bytes, which the system tidies up
	path = filepath.Join(dir, "inside")
	if err := os.WriteFile(path, make([]byte, insideSize), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// counts returns where those inside are counted: in the file at path, or within this
// process if there is none.
func counts(path string) (*atomic.Int64, error) {
	if path == "" {
		return new(atomic.Int64), nil
	}
	return mapCount(path)
}
