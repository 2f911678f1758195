package redistest

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// values are one frame each.
var values = []string{
	"+OK\r\n", "-ERR no\r\n", ":1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(12\r\n",
	"$0\r\n\r\n", "$-1\r\n", "$5\r\na\r\nbc\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n",
	"*0\r\n", "*-1\r\n", "*2\r\n*1\r\n:1\r\n$1\r\na\r\n", "~1\r\n+a\r\n",
	"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", ">2\r\n+a\r\n+b\r\n",
	"|1\r\n+ttl\r\n:1\r\n$1\r\na\r\n", "PING now\r\n",
}

func TestReadFrameSplitsWhereValuesEnd(t *testing.T) {
	r := bufio.NewReader(strings.NewReader(strings.Join(values, "")))
	for _, want := range values {
		f, err := readFrame(r)
		require.NoError(t, err, "%q", want)
		require.Equal(t, want, string(f.raw))
	}
}

func TestReadFrameWantsTheWholeValue(t *testing.T) {
	for _, v := range values {
		_, err := readFrame(bufio.NewReader(strings.NewReader(v[:len(v)-1])))
		require.Error(t, err, "%q", v)
	}
}

func TestWordsOfARequest(t *testing.T) {
	for raw, want := range map[string][]string{
		encode("SET k v"):                {"SET", "k", "v"},
		"*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n": {"", "\r\n"},
		"SET  k v\r\n":                   {"SET", "k", "v"},
		"*0\r\n":                         {},
		"\r\n":                           {},
	} {
		f, err := readFrame(bufio.NewReader(strings.NewReader(raw)))
		require.NoError(t, err)
		require.Equal(t, want, f.words(-1), "%q", raw)
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, v := range values {
		f.Add([]byte(v))
	}
	f.Add([]byte("%-7\r\n*99999999999\r\n$99999999999\r\n$x\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for rest := data; ; {
			f, err := readFrame(r)
			if err != nil {
				return
			}
			require.True(t, bytes.HasPrefix(rest, f.raw), "bytes go through unchanged and in order")
			rest = rest[len(f.raw):]
			f.words(-1)
		}
	})
}
