package main

// A measurement is a row of steps. After one that fails, the rest is not done: check and must end
// everything up to the function that has deferred caught, which returns the error. That is where
// work begins: a measurement, the task of a process, the start of a server. A goroutine that is
// begun there has to hand its errors over itself.

// failed is what check panics with.
type failed struct{ error }

// check ends the work if err is an error.
func check(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// must returns the value of a call, and checks its error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// caught makes the error of a check that of the function that has deferred it.
func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case failed:
		*err = p.error
	default:
		panic(p)
	}
}
