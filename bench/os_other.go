//go:build !linux

package main

import "time"

// alarm is as exact as Go's timers.
type alarm struct{}

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) sleep(d time.Duration) { time.Sleep(d) }

func (alarm) close() {}
