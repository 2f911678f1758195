package main

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill a child when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// threads returns the threads of this process.
func threads() (ids []int) {
	entries, _ := os.ReadDir("/proc/self/task") // without it there are none
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func signalThread(id int, s syscall.Signal) error { return unix.Tgkill(os.Getpid(), id, s) }
