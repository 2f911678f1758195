package main

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
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
