package wire

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
)

// Secrets rotate, and users are changed: for a moment Redis knows the new password and the
// client the old one, or vice versa. So a client that is refused what it was allowed before
// may be allowed it again soon. If it never was, somebody must grant it.

// rights are what a client has been allowed so far: bits.
type rights uint32

const (
	rightKnown rights = 1 << iota // its password is right, or it needs none
	rightHash                     // EVALSHA
	rightText                     // EVAL
)

// lapsed is a refusal of what the client was allowed before: Unavailable.
type lapsed struct{ error }

func (e lapsed) Unwrap() error  { return e.error }
func (lapsed) Outcome() Outcome { return Unavailable }

// allowed takes in how a call that needs some rights has ended, and returns its error, as
// lapsed if the client had them before. A right for one key, or for a command in a script, does
// not lapse here: it does not depend on a password, and a Redis does not know which keys it has
// been allowed. A caller that knows says so by AsLapsed.
func (r *Redis) allowed(needs rights, err error) error {
	had := rights(r.hadRights.Load())
	if err == nil {
		if needs |= rightKnown; had&needs != needs {
			r.hadRights.Or(uint32(needs))
		}
		return nil
	}
	if re := (*rueidis.RedisError)(nil); errors.As(err, &re) && had&rightOf(re.Error()) != 0 {
		return lapsed{err}
	}
	return err
}

// rightOf is the right that Redis has refused with that text.
func rightOf(text string) rights {
	switch {
	case strings.HasPrefix(text, "WRONGPASS "), strings.HasPrefix(text, "NOAUTH "):
		return rightKnown
	case !strings.HasPrefix(text, "NOPERM "):
		return 0
	case strings.Contains(text, "to run the 'evalsha' command"):
		return rightHash
	case strings.Contains(text, "to run the 'eval' command"):
		return rightText
	}
	return 0
}

// AsLapsed returns the error of a call for a key for which its caller has had an answer before: as
// lapsed if Redis refuses that key. Users are changed in steps: "resetkeys", and then "~sku:*".
func AsLapsed(err error) error {
	if KeyRefused(err) {
		return lapsed{err}
	}
	return err
}

// KeyRefused reports whether Redis refused a call because its user has no right to the key. A
// command in a script is a different case: an answer to a script does not show that the script
// reached that command.
func KeyRefused(err error) bool {
	if e := keyRefused(nil); errors.As(err, &e) {
		return e.KeyRefused()
	}
	return forbidden(err)
}

// keyRefused is an error of several servers.
type keyRefused interface {
	error
	KeyRefused() bool
}

// Lapsed reports whether err is the refusal of a password, or of a right, to a client that had it
// before.
func Lapsed(err error) bool { return errors.As(err, new(lapsed)) }

// Permanent reports whether a call that was refused is not worth another try even for a caller
// that must get it done, such as a release: the call is wrong in itself, its key holds something
// else, or its client is closed. Other refusals may end before a lease does.
func Permanent(err error) bool {
	m, _ := errors.AsType[matching](err)
	return errors.As(err, new(notSent)) || errors.Is(err, rueidis.ErrClosing) || m.of == holdfast.ErrWrongType
}
