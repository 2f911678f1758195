// Package redact keeps secrets out of errors and logs.
package redact

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

// A server repeats the arguments of a command that it does not know: owners, keys, and the
// password if it knows no AUTH (src/server.c).
const repeated = ", with args beginning with: "

// Reply returns the text of an error reply without the arguments that it repeats; false if
// err is no such reply.
func Reply(err error) (text string, repeats bool) {
	re := (*rueidis.RedisError)(nil)
	if !errors.As(err, &re) {
		return "", false
	}
	text, _, repeats = strings.Cut(re.Error(), repeated)
	return text, repeats
}

// Error is err, or for logs an error without the arguments that a reply repeats.
func Error(err error) error {
	if text, repeats := Reply(err); repeats {
		return errors.New(text)
	}
	return err
}
