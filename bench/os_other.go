//go:build !linux

package main

import (
	"sync/atomic"
	"syscall"
	"time"
)

// dieWithParent does nothing here: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// mapCount counts within this process here.
func mapCount(string) (*atomic.Int64, error) { return new(atomic.Int64), nil }

// alarm sleeps as exactly as Go's timers are here.
type alarm struct{}

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) sleep(d time.Duration) { time.Sleep(d) }

func (alarm) close() {}
