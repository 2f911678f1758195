package main

import "syscall"

// attributes has the kernel kill a server whose program died without doing so,
// and keeps the Ctrl-C of the terminal from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
