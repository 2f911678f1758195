package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// DieWithParent has the kernel kill a process whose parent died without stopping it. The
// parent must fork it on a thread that lasts as long: the signal follows the thread.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Stopped reports whether a signal has stopped the process, which it does some
// instants after it was sent, or the process is gone.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // pid (name) state …
	return err != nil || bytes.HasPrefix(state, []byte("T")) || bytes.HasPrefix(state, []byte("Z"))
}
