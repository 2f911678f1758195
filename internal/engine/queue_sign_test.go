package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignedOwners(t *testing.T) {
	d, other := lingerers(0).in, lingerers(0).in
	other.secret[0] = 1 // of the same client
	for range 100 {
		owner := d.newSignedOwner()
		require.LessOrEqual(t, len(owner), longest)
		require.True(t, d.signed(owner), owner)
		require.True(t, d.signed(longOwner(owner)))
		require.False(t, other.signed(owner))
		require.False(t, d.signed(owner+"0"))
		require.False(t, d.signed(owner[:len(owner)-1]))
		require.False(t, d.signed("x"+owner[1:]))
		require.False(t, d.signed(strings.Replace(owner, ":0", ":01", 1)), "of another attempt")
	}
	for _, owner := range []string{
		"", d.newOwner(), d.Client, d.Client + ":", d.Client + ":0", d.Client + ":0" + strings.Repeat("0", 100), d.Client + ":0" + d.sign(d.Client+":0"),
		d.Client + ":0" + strings.Repeat("0", 200) + d.newSignedOwner()[len(d.Client)+2:],
	} {
		require.False(t, d.signed(owner), owner)
	}
}
