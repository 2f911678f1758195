package holdfast_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// Every kind of lock fits code that takes a Locker, or an Operator.
var _ = []interface {
	holdfast.Locker
	holdfast.Operator
}{
	(*rlock.Locker)(nil), (*fair.Locker)(nil), (*rwlock.Locker)(nil), (*semaphore.Locker)(nil), (*multilock.Locker)(nil), (*holdfasttest.Locker)(nil),
}

var _ holdfast.Locker = (*rwlock.RLocker)(nil)
