package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm sleeps to the microsecond. While nothing runs, epoll_wait rounds Go's timers up to a
// millisecond, and again after each event: proxies in one process would wait until the last of
// them has heard from its server.
type alarm struct {
	fd   int
	file *os.File // of fd; the runtime polls it like a connection
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
	_, _ = a.file.Read(expired[:]) // nothing closes it meanwhile, and what it reads says nothing
}

func (a alarm) close() { _ = a.file.Close() }
