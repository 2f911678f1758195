package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalSends reports whether s is one of the signals that the terminal itself sends to the
// child, as this process group, which is also the child's, is in the foreground.
func terminalSends(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
