package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestG8_GrantsFollowTheQueue(t *testing.T) { locktest.RunOrder(t, kind) }

func TestG8_OrderCheckFindsABrokenQueue(t *testing.T) { locktest.RunOrderControl(t, kind) }

func TestG8_LongQueue(t *testing.T) { locktest.RunLongQueue(t, kind) }
