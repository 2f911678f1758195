package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// frame is one whole RESP2 or RESP3 value as it stood on the wire.
type frame struct {
	raw   []byte
	bulks [][2]int // where in raw its bulk strings lie, at any depth
}

// words are the first n bulk strings of the frame, or all if there are fewer or
// n is negative. An inline request is split at spaces.
func (f frame) words(n int) []string {
	if len(f.bulks) == 0 && f.raw[0] != '*' {
		return strings.Fields(string(f.raw))
	}
	if n < 0 || n > len(f.bulks) {
		n = len(f.bulks)
	}
	words := make([]string, n)
	for i := range words {
		words[i] = string(f.raw[f.bulks[i][0]:f.bulks[i][1]])
	}
	return words
}

// maxLength is Redis' own limit on the length of a string (proto-max-bulk-len).
const maxLength = 512 << 20

// readFrame reads the next value. Streamed values ("$?"), which no Redis sends,
// are an error.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	for todo := 1; todo > 0; todo-- { // values still to be read
		line, err := r.ReadBytes('\n')
		if err != nil {
			return frame{}, err
		}
		f.raw = append(f.raw, line...)
		if !strings.ContainsRune("$=!*~>%|", rune(line[0])) {
			continue // a simple value: the line is all of it
		}
		n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
		if err != nil || n > maxLength {
			return frame{}, fmt.Errorf("not RESP: %q", line)
		}
		if n < 0 {
			continue // nil
		}
		switch line[0] {
		case '$', '=', '!':
			from := len(f.raw)
			f.raw = append(f.raw, make([]byte, n+2)...)
			if _, err := io.ReadFull(r, f.raw[from:]); err != nil {
				return frame{}, err
			}
			f.bulks = append(f.bulks, [2]int{from, from + n})
		case '%':
			todo += 2 * n
		case '|': // an attribute belongs to the value that follows it
			todo += 2*n + 1
		default:
			todo += n
		}
	}
	return f, nil
}
