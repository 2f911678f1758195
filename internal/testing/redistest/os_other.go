//go:build !linux

package redistest

import "syscall"

// DieWithParent does nothing here: only Linux has a parent-death signal.
func DieWithParent() *syscall.SysProcAttr { return nil }

// Stopped assumes it: there is no portable way to ask.
func Stopped(int) bool { return true }
