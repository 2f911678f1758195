package scripts

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
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
	for _, seed := range []string{"", "\x00\x00", "\x00\x02", "\x00\x06", "\x06\x00", "\x06\x03\x00\x00\x00\x0a\x00\x0a",
		"\x06\x03\x01\x06\x00\x01\x00\x06", "\x06\x03\x00\x01\x00\x00\x01\x03", "\x03", "\x08\x02",
		"\x06\x03\x00\x00\x00\x0a\x00\x01", "\x06\x03\x01\x00\x00\x01\x00\x06"} {
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
		for _, parse := range []func(rueidis.RedisMessage, error) (Acquired, error){parseAcquired, parseFenced} {
			a, err := parse(m, nil)
			check(err, a != Acquired{})
			if err == nil && !a.OK && !a.Gone {
				require.True(t, a.Remaining == NoExpiry || a.Remaining >= time.Millisecond)
			}
			require.False(t, a.OK && a.Gone)
			require.LessOrEqual(t, a.Fence, a.FenceEnd)
		}
		r, err := parseReleased(m, nil)
		check(err, r != Released{})
		require.GreaterOrEqual(t, r.Listeners, -1)

		ours, err := parseBool(m, nil)
		check(err, ours)

		h, err := parseHolder(m, nil)
		check(err, h != Holder{})
		require.Equal(t, h.Owner == "", h == Holder{})

		answers := make([]Answer, 3)
		if err = parseRenewed(m, nil, answers); err == nil {
			require.NotContains(t, answers, Unanswered)
		}
		if !m.IsArray() {
			require.Equal(t, Unknown, OutcomeOf(err))
			require.Equal(t, make([]Answer, 3), answers)
		}
	})
}

func TestRemainingOfAnyPTTL(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		-1: NoExpiry, 1: time.Millisecond, math.MaxInt64: math.MaxInt64, math.MaxInt64 / 1_000_000: math.MaxInt64 / 1_000_000 * time.Millisecond,
	} {
		got := must(remaining(ms))(t)
		require.Equal(t, want, got)
	}
	for _, ms := range []int64{0, -2, math.MinInt64} {
		_, err := remaining(ms)
		require.Error(t, err)
	}
}
