//go:build unix && !linux

package main

import "syscall"

// attributes keeps the Ctrl-C of the terminal from a server. Only Linux has a
// parent-death signal: elsewhere servers outlive a program that was killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
