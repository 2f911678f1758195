//go:build !linux

package main

import (
	"sync/atomic"
	"syscall"
)

// dieWithParent does nothing here: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// mapCount counts within this process here.
func mapCount(string) (*atomic.Int64, error) { return new(atomic.Int64), nil }
