//go:build !linux

package main

import "syscall"

// dieWithParent does nothing here: a child outlives a holdfast that is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }
