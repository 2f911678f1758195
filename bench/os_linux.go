package main

import "syscall"

// dieWithParent has the kernel kill a server when the program dies without
// stopping it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
