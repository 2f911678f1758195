package main

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill a server when the program dies without
// stopping it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// mapCount is the number in a file, shared with other processes until this one ends.
func mapCount(path string) (*atomic.Int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	mapped, err := syscall.Mmap(int(f.Fd()), 0, insideSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return (*atomic.Int64)(unsafe.Pointer(&mapped[0])), nil // a mapping begins with a page, so it is aligned
}

// alarm sleeps to the microsecond. Go's timers, while nothing runs, are rounded up to
// a millisecond by epoll_wait, and anew with each event: proxies in one process would
// wait until the last of them has heard of its server.
type alarm struct {
	fd   int
	file *os.File // of fd; the runtime waits for it as for a connection
}

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	return alarm{fd, os.NewFile(uintptr(fd), "timer")}, err
}

func (a alarm) sleep(d time.Duration) {
	if d <= 0 {
		return // it would disarm the timer
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &at, nil); err != nil {
		time.Sleep(d)
		return
	}
	var expired [8]byte
	_, _ = a.file.Read(expired[:]) // it is not closed while it is read, and has nothing else to tell
}

func (a alarm) close() { _ = a.file.Close() }
