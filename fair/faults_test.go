package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestFaults(t *testing.T) { locktest.RunFaults(t, kind) }
