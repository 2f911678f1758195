package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAtLeast(t *testing.T) {
	for version, is := range map[string]bool{
		"6.2.14": true, "6.3": true, "7.0.15": true, "7": true, "10.0.1": true,
		"6.0.16": false, "5.9.9": false, "6": false, "": false, "unstable": false,
	} {
		require.Equal(t, is, AtLeast(version, 6, 2), version)
	}
}
