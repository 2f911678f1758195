package main

// A measurement is a row of steps, each of which can fail. After a failure the rest is not done: check and must end
// the function that has deferred caught, and it returns the error. The prepare functions of roles, their jobs, and what
// opens a locker leave that to their caller.

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
