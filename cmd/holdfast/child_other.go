//go:build !linux

package main

import (
	"os"
	"syscall"
)

// dieWithParent does nothing here: a child outlives a killed holdfast.
func dieWithParent() *syscall.SysProcAttr { return nil }

// hasEnded cannot tell here.
func hasEnded(*os.Process) bool { return false }

// threads returns none: here a signal cannot go to one thread.
func threads() []int { return nil }

func signalThread(int, syscall.Signal) error { return syscall.ENOSYS }
