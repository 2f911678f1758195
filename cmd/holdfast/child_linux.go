package main

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill a child when the thread that started it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// hasEnded reports whether a child has ended, even if nobody has been told yet.
func hasEnded(child *os.Process) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, child.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == unix.ECHILD || err == nil && info.Signo != 0
}

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
