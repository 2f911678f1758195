package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminalSends reports whether s is one of the signals that the terminal itself sends to the
// child, as the child's process group is in the foreground. It is this one, unless the child has
// made its own, as timeout(1) does.
func terminalSends(s os.Signal, child int) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	its, gone := unix.Getpgid(child)
	return err == nil && gone == nil && group == its
}
