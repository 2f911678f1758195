package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A replica is known by the whole text of Redis: a label may begin like it.
func TestF36_ALabelIsNoRefusal(t *testing.T) {
	for text, is := range map[string]bool{
		"READONLY You can't write against a read only replica. script: 1, on @user_script:1.": true,
		"@user_script: 1: -READONLY You can't write against a read only replica.":             true,
		"READONLY db-1/4711": false,
		"web-3/4711":         false,
	} {
		require.Equal(t, is, isReadOnly(text), text)
	}
}
