package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestFaults(t *testing.T) { locktest.RunFaults(t, door) }

func TestFaults3(t *testing.T) {
	onSeveral(t)
	locktest.RunFaults(t, doorOf(3))
}
