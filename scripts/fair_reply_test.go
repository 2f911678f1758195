package scripts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseGrant(t *testing.T) {
	for _, key := range []string{"k", "a b", " for k", "k for k", "\x00\n"} {
		text := ofA(1) + " 5000 7 9 02"
		want, ok := grantOf(text)
		require.True(t, ok)
		g, ok := ParseGrant(key, text+" for "+key)
		require.True(t, ok, key)
		require.Equal(t, want, g)
		for _, other := range []string{text, text + " for ", text + " for " + key + "2", text + " for {" + key + "}", text + " " + key, "for " + key, "0"} {
			g, ok = ParseGrant(key, other)
			require.False(t, ok, other)
			require.Zero(t, g, other)
		}
	}
}

func TestGrantOf(t *testing.T) {
	g, ok := grantOf(ofA(1) + " 5000 7 9 02 013")
	require.True(t, ok)
	require.Equal(t, Grant{Owner: ofA(1), Lease: 5 * time.Second, Fence: 7, FenceEnd: 9, Members: []string{ofA(2), ofA(13)}}, g)
	g, ok = grantOf(ofA(1) + " 5000 0 0")
	require.True(t, ok)
	require.Equal(t, Grant{Owner: ofA(1), Lease: 5 * time.Second}, g)
	g, ok = grantOf(ofA(1))
	require.True(t, ok)
	require.Equal(t, Grant{Owner: ofA(1)}, g)
	g, ok = grantOf(ofA(1) + " 5000 0 0" + strings.Repeat(" 02", mostMembers))
	require.True(t, ok)
	require.Len(t, g.Members, mostMembers)
	for _, bad := range []string{"", "0", "1", "x", " ", " 5000 7 9", ofA(1) + " ", ofA(1) + " 5000", ofA(1) + " 5000 7", ofA(1) + " 5000 7 ",
		ofA(1) + " 0 7 9", ofA(1) + " -1 7 9", ofA(1) + " 5000 9 7", ofA(1) + " 5000 -1 7", ofA(1) + " 5s 7 9",
		ofA(1) + " 5000 7 9  02", ofA(1) + " 3155760000000000 7 9", ofA(1) + " 99999999999999999999 7 9",
		ofA(1) + " 5000 0 0" + strings.Repeat(" 02", mostMembers+1)} {
		g, ok = grantOf(bad)
		require.False(t, ok, bad)
		require.Zero(t, g, bad)
	}
}

// Whatever is said on an inbox, by whomever: no panic, nothing believed that was
// not understood, and what is believed can be kept.
func FuzzGrant(f *testing.F) {
	for _, text := range []string{"", "0", ofA(1), ofA(1) + " 5000 0 0", ofA(1) + " 5000 7 9 02 03", ofA(1) + " 5000 7 9 02 for k", ": 1 1 1 ", ":  "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireGrant(t, text)
		said, ok := ParseGrant("k", text)
		if ok {
			g, fine := grantOf(strings.TrimSuffix(text, " for k"))
			require.True(t, fine)
			require.Equal(t, g, said)
		} else {
			require.Zero(t, said)
		}
	})
}

func requireGrant(t *testing.T, text string) {
	g, ok := grantOf(text)
	if !ok {
		require.Zero(t, g)
		return
	}
	require.True(t, strings.HasPrefix(text, g.Owner))
	client, _, found := strings.Cut(g.Owner, ":")
	require.True(t, found)
	if g.Lease == 0 {
		require.Equal(t, Grant{Owner: text}, g)
		return
	}
	require.True(t, g.Lease >= time.Millisecond && g.Lease <= maxLease)
	require.True(t, g.Fence >= 0 && g.Fence <= g.FenceEnd)
	again := fmt.Sprintf("%s %d %d %d", g.Owner, g.Lease.Milliseconds(), g.Fence, g.FenceEnd)
	for _, m := range g.Members {
		require.True(t, strings.HasPrefix(m, client+":"))
		again += " " + m[len(client)+1:]
	}
	h, ok := grantOf(again)
	require.True(t, ok)
	require.Equal(t, g, h)
}

// Whatever a server replies: no parser panics, an error is Unknown and comes
// with nothing believed, and what is believed keeps its promises.
func FuzzFairReplies(f *testing.F) {
	for _, seed := range []string{"", "\x00\x00", "\x00\x01", "\x00\x05", "\x00\x04", "\x01\x06", "\x01\x07", "\x01\x08", "\x01\x09", "\x01\x00",
		"\x06\x03\x00\x00\x00\x0a\x00\x0a", "\x06\x03\x00\x01\x00\x0a\x00\x0a", "\x06\x03\x00\x01\x00\x00\x00\x00",
		"\x06\x04\x00\x01\x00\x06\x01\x00\x00\x01", "\x06\x04\x00\x05\x00\x06\x01\x08\x00\x03", "\x06\x04\x00\x00\x00\x06\x01\x07\x00\x00",
		"\x06\x02\x00\x01\x01\x06", "\x06\x03\x00\x05\x01\x00\x00\x01", "\x06\x03\x00\x01\x01\x08\x00\x05", "\x01\x03", "\x03", "\x08\x02"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := message(t, data)
		check := func(err error, believed bool) {
			t.Helper()
			if err != nil {
				require.Equal(t, Unknown, OutcomeOf(err))
				require.False(t, believed)
			}
		}
		kept := func(g Grant) {
			t.Helper()
			require.True(t, g.Owner != "" || g.Lease == 0 && g.FenceEnd == 0 && g.Members == nil)
			require.True(t, g.Fence >= 0 && g.Fence <= g.FenceEnd && g.Lease >= 0)
		}

		a, err := parseConfirmed(m, nil)
		check(err, a != Acquired{})
		require.LessOrEqual(t, a.Fence, a.FenceEnd)

		p, err := parsePassed(m, nil)
		check(err, p.Ours || p.ProbeSoon || p.Grant.Owner != "")
		kept(p.Grant)
		require.True(t, p.Ours || !p.ProbeSoon && p.Grant.Owner == "")

		e, err := parseEntered(m, nil, 1)
		check(err, e.Java || e.ProbeSoon || e.Grant.Owner != "" || e.Distance != 0 || e.Places != nil)
		kept(e.Grant)
		require.True(t, e.Distance >= 0 && e.Distance <= maxLease)
		if err == nil {
			require.Len(t, e.Places, 1)
			require.Contains(t, []Place{Waiting, Holding, Gone}, e.Places[0])
		}

		l := parseProbed(m, 2)
		if l.Err != nil {
			require.Equal(t, Probed{Err: l.Err}, l)
			require.NotEqual(t, Done, OutcomeOf(l.Err))
		}
		kept(l.Grant)
		for _, i := range l.Absent {
			require.True(t, i == 0 || i == 1)
		}
	})
}
