//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing here: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Stopped assumes it: there is no portable way to ask.
func Stopped(int) bool { return true }
