//go:build !linux

package main

import "syscall"

// dieWithParent does nothing here: a child outlives a killed holdfast.
func dieWithParent() *syscall.SysProcAttr { return nil }

// threads returns none: here a signal cannot go to one thread.
func threads() []int { return nil }

func signalThread(int, syscall.Signal) error { return syscall.ENOSYS }
