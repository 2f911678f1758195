package rlock_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind shows rlock to the conformance suite.
var kind = locktest.Kind{Name: "rlock", New: func(client rueidis.Client, o locktest.Options) (holdfast.Locker, error) {
	var opts []rlock.Option
	if o.Lease != 0 {
		opts = append(opts, rlock.WithLease(o.Lease))
	}
	if o.Handover != nil {
		opts = append(opts, rlock.WithLocalHandover(*o.Handover))
	}
	if o.Fencing {
		opts = append(opts, rlock.WithFencing())
	}
	if o.MaxWaiters != 0 {
		opts = append(opts, rlock.WithMaxWaiters(o.MaxWaiters))
	}
	if o.MaxOutage != nil {
		opts = append(opts, rlock.WithMaxOutage(*o.MaxOutage))
	}
	if o.Logger != nil {
		opts = append(opts, rlock.WithLogger(o.Logger))
	}
	l, err := rlock.New(client, opts...)
	if err != nil {
		return nil, err
	}
	return l, nil
}}
