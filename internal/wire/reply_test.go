package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

// encode appends a reply in the form that rueidis can load: a type byte, a
// number (value or length), the content. It is made from data, one byte for
// each choice, so that any data is some reply. It returns what is left of data.
func encode(to, data []byte, depth int) (reply, rest []byte) {
	take := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	number := func(v int64) { to = binary.BigEndian.AppendUint64(to, uint64(v)) }
	kinds := []byte{':', '$', '+', '_', '#', ',', '*', '~', '%'}
	if depth == 0 {
		kinds = kinds[:6]
	}
	kind := kinds[int(take())%len(kinds)]
	to = append(to, kind)
	switch kind {
	case ':', '#':
		numbers := []int64{0, 1, -1, -2, -3, 2, 30000, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64, 1795218662303123}
		number(numbers[int(take())%len(numbers)])
	case '_':
		number(0)
	case '*', '~', '%':
		n := int(take()) % 5
		if kind == '%' {
			n *= 2
		}
		number(int64(n))
		for range n {
			to, data = encode(to, data, depth-1)
		}
	default:
		texts := []string{"", "x", "0", "WRONGTYPE no", "ERR no", "READONLY no", ownA,
			ownA + " 5000 0 0", ownA + " 5000 7 9 02 03", ownA + " 0 0 0", ownA + " 5000 9 7"}
		text := texts[int(take())%len(texts)]
		number(int64(len(text)))
		to = append(to, text...)
	}
	return to, data
}

func message(t *testing.T, data []byte) rueidis.RedisMessage {
	encoded, _ := encode(make([]byte, 7), data, 2) // 7: rueidis' expiry
	var m rueidis.RedisMessage
	require.NoError(t, m.CacheUnmarshalView(encoded))
	return m
}

// Whatever a server replies: no parser panics, an error is Unknown and comes
// with nothing believed, and what is believed keeps its promises.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{"", "\x00\x00", "\x00\x01", "\x00\x02", "\x00\x04", "\x00\x05", "\x00\x06", "\x03", "\x08\x02",
		"\x01\x00", "\x01\x03", "\x01\x06", "\x01\x07", "\x01\x08", "\x01\x09", "\x06\x00",
		"\x06\x03\x00\x00\x00\x0a\x00\x0a", "\x06\x03\x01\x06\x00\x01\x00\x06", "\x06\x03\x00\x01\x00\x00\x01\x03",
		"\x06\x03\x00\x00\x00\x0a\x00\x01", "\x06\x03\x01\x00\x00\x01\x00\x06",
		"\x06\x03\x00\x01\x00\x0a\x00\x0a", "\x06\x03\x00\x01\x00\x00\x00\x00",
		"\x06\x04\x00\x01\x00\x06\x01\x00\x00\x01", "\x06\x04\x00\x05\x00\x06\x01\x08\x00\x03", "\x06\x04\x00\x00\x00\x06\x01\x07\x00\x00",
		"\x06\x02\x00\x01\x01\x06", "\x06\x03\x00\x05\x01\x00\x00\x01", "\x06\x03\x00\x01\x01\x08\x00\x05"} {
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
		for _, of := range []struct {
			parse    parser[AcquireReply]
			acquires bool
		}{{parseAcquired, true}, {parseFenced, true}, {parseConfirmed, false}} {
			a, err := of.parse(m, nil)
			check(err, a != AcquireReply{})
			require.LessOrEqual(t, a.Fence, a.FenceEnd)
			if of.acquires {
				require.True(t, err != nil || a.OK || a.Gone || a.Remaining == NoExpiry || a.Remaining >= time.Millisecond)
				require.False(t, a.OK && a.Gone)
			}
		}
		r, err := parseReleased(m, nil)
		check(err, r != ReleaseReply{})
		require.GreaterOrEqual(t, r.Listeners, 0)

		ours, err := parseBool(m, nil)
		check(err, ours)

		s, err := parseStatus(m, nil)
		check(err, !reflect.DeepEqual(s, holdfast.Status{}))
		s.Waiting = 0
		require.Equal(t, s.Held, !reflect.DeepEqual(s, holdfast.Status{}))
		require.Equal(t, s.Held, s.Owner != "")
		s, err = parsePermits(m, nil)
		check(err, !reflect.DeepEqual(s, holdfast.Status{}))
		require.Equal(t, s.Held, len(s.Holders) > 0)

		answers := make([]watchdog.Answer, 3)
		if err = parseRenewed(m, nil, all(3), answers); err == nil {
			require.NotContains(t, answers, watchdog.Unanswered)
		}
		if all, _ := m.ToInt64(); all != 1 && !m.IsArray() {
			require.Equal(t, Unknown, OutcomeOf(err))
			require.Equal(t, make([]watchdog.Answer, 3), answers)
		}

		p, err := parsePassed(m, nil)
		check(err, p.Ours || p.HeartbeatSoon || p.Grant.Owner != "")
		kept(p.Grant)
		require.True(t, p.Ours || !p.HeartbeatSoon && p.Grant.Owner == "")

		e, err := parseEntered(m, nil, 1)
		check(err, e.Java || e.HeartbeatSoon || e.Grant.Owner != "" || e.Ahead != 0 || e.States != nil)
		kept(e.Grant)
		require.True(t, e.Ahead >= 0 && e.Ahead <= maxLease)
		if err == nil {
			require.Subset(t, []OwnerState{Waiting, Holding, Gone}, e.States)
			require.Len(t, e.States, 1)
		}

		l := parseHeartbeatReply(m, 2)
		if l.Err != nil {
			require.Equal(t, HeartbeatReply{Err: l.Err}, l)
			require.NotEqual(t, Done, OutcomeOf(l.Err))
		}
		kept(l.Grant)
		require.Subset(t, []int{0, 1}, l.Absent)
		require.Zero(t, parseHeartbeatReply(m, 0).Place, "of no owner")
	})
}

func TestRemainingOfAnyPTTL(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		-1: NoExpiry, 1: time.Millisecond, math.MaxInt64: math.MaxInt64, math.MaxInt64 / 1_000_000: math.MaxInt64 / 1_000_000 * time.Millisecond,
	} {
		require.Equal(t, want, must(remaining(ms))(t))
	}
	for _, ms := range []int64{0, -2, math.MinInt64} {
		require.Error(t, errOf(remaining(ms)))
	}
}

func TestParseGrant(t *testing.T) {
	for _, key := range []string{"k", "a b", " for k", "k for k", "\x00\n"} {
		text := ofA(1) + " 5000 7 9 02"
		g, ok := ParseGrant(key, text+" for "+key)
		require.True(t, ok, key)
		require.Equal(t, Grant{Owner: ofA(1), Lease: 5 * time.Second, Fence: 7, FenceEnd: 9, Members: []string{ofA(2)}}, g)
		for _, other := range []string{text, text + " for ", text + " for " + key + "2", text + " for {" + key + "}", text + " " + key, "for " + key, "0"} {
			g, ok = ParseGrant(key, other)
			require.False(t, ok, other)
			require.Zero(t, g, other)
		}
	}
}

func TestGrantOf(t *testing.T) {
	many := slices.Repeat([]string{ofA(2)}, longestRun)
	for text, want := range map[string]Grant{
		" 5000 7 9 02 013": {Lease: 5 * time.Second, Fence: 7, FenceEnd: 9, Members: []string{ofA(2), ofA(13)}},
		" 5000 0 0":        {Lease: 5 * time.Second},
		"":                 {},
		" 5000 0 0" + strings.Repeat(" 02", longestRun): {Lease: 5 * time.Second, Members: many},
	} {
		want.Owner = ofA(1)
		g, ok := grantOf(ofA(1) + text)
		require.True(t, ok)
		require.Equal(t, want, g)
	}
	for _, bad := range []string{"", "0", "1", "x", " ", " 5000 7 9", ofA(1) + " ", ofA(1) + " 5000", ofA(1) + " 5000 7", ofA(1) + " 5000 7 ",
		ofA(1) + " 0 7 9", ofA(1) + " -1 7 9", ofA(1) + " 5000 9 7", ofA(1) + " 5000 -1 7", ofA(1) + " 5s 7 9",
		ofA(1) + " 5000 7 9  02", ofA(1) + " 3155760000000000 7 9", ofA(1) + " 99999999999999999999 7 9",
		ofA(1) + " 5000 0 0" + strings.Repeat(" 02", longestRun+1)} {
		g, ok := grantOf(bad)
		require.False(t, ok, bad)
		require.Zero(t, g, bad)
	}
}

// Whatever is said on an inbox, by whomever: no panic, nothing believed that was
// not understood, and what is believed says the same in words and can be kept.
func FuzzGrant(f *testing.F) {
	for _, text := range []string{"", "0", ofA(1), ofA(1) + " 5000 0 0", ofA(1) + " 5000 7 9 02 03", ofA(1) + " 5000 7 9 02 for k", ": 1 1 1 ", ":  "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if said, ok := ParseGrant("k", text); ok {
			g, _ := grantOf(strings.TrimSuffix(text, " for k"))
			require.Equal(t, g, said)
		} else {
			require.Zero(t, said)
		}
		g, ok := grantOf(text)
		client, _, found := strings.Cut(g.Owner, ":")
		require.Equal(t, ok, found)
		if g.Lease == 0 {
			require.True(t, reflect.DeepEqual(Grant{}, g) || reflect.DeepEqual(Grant{Owner: text}, g))
			return
		}
		require.True(t, g.Lease >= time.Millisecond && g.Lease <= maxLease)
		require.True(t, g.Fence >= 0 && g.Fence <= g.FenceEnd)
		again := fmt.Sprintf("%s %d %d %d", g.Owner, g.Lease.Milliseconds(), g.Fence, g.FenceEnd)
		for _, m := range g.Members {
			require.True(t, strings.HasPrefix(m, client+":"))
			again += " " + m[len(client)+1:]
		}
		same, _ := grantOf(again)
		require.Equal(t, g, same)
	})
}
