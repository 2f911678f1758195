//go:build !linux

package main

import (
	"syscall"
	"time"
)

// dieWithParent does nothing here: only Linux has a parent-death signal.
func dieWithParent() *syscall.SysProcAttr { return nil }

// alarm is as exact as Go's timers.
type alarm struct{}

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) sleep(d time.Duration) { time.Sleep(d) }

func (alarm) close() {}
