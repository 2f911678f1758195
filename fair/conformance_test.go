package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestConformance(t *testing.T) { locktest.Run(t, door) }
