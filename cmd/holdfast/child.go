package main

import (
	"os"
	"syscall"
)

// awaitExit waits for the end of a child. It also reaps all other children: as process 1 of a
// container, holdfast inherits those of processes that have ended.
func awaitExit(child *os.Process) (status syscall.WaitStatus) {
	for {
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil, pid == child.Pid: // there can be no error, as nobody else waits for it
			return status
		}
	}
}
