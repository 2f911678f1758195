package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// before returns the signals that this process had got before the call, in the order in which they
// came. signals may deliver them later: a thread that has taken a signal may stand still before it
// runs the handler. So each thread gets a signal of its own, which comes behind that one. Linux
// only; elsewhere one signal must do.
func before(signals <-chan os.Signal) (got []os.Signal) {
	const mark = syscall.SIGWINCH // does no harm, and has the highest number: a thread takes it last
	marks := make(chan os.Signal, 1)
	signal.Notify(marks, mark)
	defer signal.Stop(marks)
	late := time.After(time.Second) // no mark comes from a thread that ends
	passed := func() bool {
		select {
		case <-marks:
			return true
		case <-late:
			return false
		}
	}
	_ = syscall.Kill(os.Getpid(), mark) // once it is there, no thread takes an earlier signal
	for going, threads := passed(), threads(); going && len(threads) > 0; threads = threads[1:] {
		if signalThread(threads[0], mark) == nil { // otherwise it has ended
			going = passed()
		}
	}
	for len(signals) > 0 {
		got = append(got, <-signals)
	}
	return got
}
