package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestConformance(t *testing.T) { locktest.Run(t, door) }

func TestConformance3(t *testing.T) { locktest.Run(t, doorOf(3)) }

func TestConformance5(t *testing.T) { locktest.Run(t, doorOf(5)) }
