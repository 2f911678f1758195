package main

import (
	"errors"
	"fmt"
)

// trier is a locker that can also ask without waiting.
type trier interface {
	locker
	// tries returns a function that tells whether it got key.
	tries(key string) func() (bool, error)
}

// tried is the key that is asked for and always refused.
const tried = "tried"

// refused is goroutines of one process that try a key which another client holds.
// Of it, a cycle is one try.
func refused(goroutines int) workload {
	const speed, sent = "cycles/s", "commands/cycle"
	c := crew{goroutines}
	names := []string{
		holdfastName, fairName, rueidisName, redsyncName, redislockName,
		etcdName, redissonName, redissonSpinName,
	}
	return workload{
		name:     fmt.Sprintf("try-lock refused/%d", goroutines),
		subjects: c.subjects(work{try: true}, names...),
		figures: []figure{
			{"tries/s", target{}, of(holdfastName, speed)},
			{"÷ best rival", atLeast(1), beside(holdfastName, speed)},
			{"commands per try", atMost(1), of(holdfastName, sent)},
		},
	}
}

// refusals is a locker whose cycles are tries that must be refused.
type refusals struct {
	trier
	holding locker
}

var errNotRefused = errors.New("exclusion is broken: a key that is held was given to another")

// openRefusals has a second client of the library hold the key.
func openRefusals(l locker, open func() (locker, error)) (locker, error) {
	asking, ok := l.(trier)
	if !ok {
		return nil, errors.New("the library has no try-lock")
	}
	holding, err := open()
	if err != nil {
		return nil, err
	}
	if _, err := holding.(holder).hold(tried); err != nil {
		holding.close()
		return nil, err
	}
	return &refusals{asking, holding}, nil
}

func (r *refusals) cycle(key string) func(func()) error {
	try := r.tries(key)
	return func(inside func()) error {
		got, err := try()
		if err == nil && got {
			return errNotRefused
		}
		inside()
		return err
	}
}

func (r *refusals) close() {
	r.holding.close()
	r.trier.close()
}
