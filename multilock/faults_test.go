package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestFaults(t *testing.T) { locktest.RunFaults(t, kind) }

func TestFaults3(t *testing.T) { locktest.RunFaults(t, onSeveral(t, 3)) }

func TestFaults5(t *testing.T) { locktest.RunFaults(t, onSeveral(t, 5)) }
