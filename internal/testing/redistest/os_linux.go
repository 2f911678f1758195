package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// dieWithParent has the kernel kill a server whose test process died without
// running its cleanups.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Stopped reports whether a signal has stopped the process, which it does some
// instants after it was sent, or the process is gone.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(stat, []byte(") ")) // pid (name) state …
	return err != nil || bytes.HasPrefix(state, []byte("T")) || bytes.HasPrefix(state, []byte("Z"))
}
