package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func FuzzKeys(f *testing.F) { locktest.FuzzKeys(f, kind) }
