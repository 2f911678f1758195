package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// Outcome says what a call has done in Redis, as far as its caller can know.
type Outcome int

const (
	// Done: the script ran and its reply is known.
	Done Outcome = iota
	// Unavailable: definitely nothing was done, and the same call may succeed later: Redis cannot
	// be reached, is loading, read-only, busy, out of memory and the like.
	Unavailable
	// Refused: definitely nothing was done, and waiting does not cure it: a wrong password, a
	// missing right, a key of a wrong type, a bad argument, a context that ended before anything
	// was sent, a closed client. A password, or a right to run scripts, that the [Redis] had before
	// is Unavailable.
	Refused
	// Unknown: the script may have run, or may still run: the reply did not
	// come or was not understood.
	Unknown
	// Doubtful: the script may have run, and waiting does not cure it. Redis never refuses in
	// these words, but a proxy may have; or the WAIT behind the script was refused.
	Doubtful
)

// Final reports whether a call was refused, so that neither it nor a wait goes on.
func (o Outcome) Final() bool { return o == Refused || o == Doubtful }

// MayHaveRun reports whether the script of a call that failed may have run: what it may have done
// must be undone, or the call must be repeated.
func (o Outcome) MayHaveRun() bool { return o == Unknown || o == Doubtful }

// OutcomeOf judges the error that a method of [Redis] returned. Errors that it
// does not know are Unknown.
//
// One case is judged by what can still be done about it. A call that is cut off because its
// client is closed is Refused. It may have run, but no further call could find out or undo
// it.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Done
	}
	if j := judged(nil); errors.As(err, &j) {
		return j.Outcome()
	}
	if re := (*rueidis.RedisError)(nil); errors.As(err, &re) && !re.IsNil() {
		outcome, _ := meaningOf(re.Error())
		return outcome
	}
	if re := refusal(""); errors.As(err, &re) {
		outcome, _ := meaningOf(string(re))
		return outcome
	}
	if errors.Is(err, rueidis.ErrNoSlot) { // it knows no master of the slot, as during a failover
		return Unavailable
	}
	if errors.Is(err, rueidis.ErrClosing) || errors.As(err, new(*tls.CertificateVerificationError)) {
		return Refused
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		switch {
		case op.Op == "dial":
			return Unavailable
		case op.Op == "remote error" && refusesClient(op.Err.Error()):
			return Refused
		}
	}
	return Unknown
}

// refusesClient reports whether a TLS alert of the server, as crypto/tls words it, is one that
// ends a handshake for the client's certificate or settings: no command has run then.
// https://www.rfc-editor.org/rfc/rfc8446#section-6.2
func refusesClient(alert string) bool {
	return strings.Contains(alert, "certificate") ||
		alert == "tls: handshake failure" || alert == "tls: protocol version not supported"
}

// Replied reports whether the server itself gave err.
func Replied(err error) bool {
	return errors.As(err, new(*rueidis.RedisError)) || errors.As(err, new(refusal))
}

// judged is an error with a known outcome.
type judged interface {
	error
	Outcome() Outcome
}

// Judge returns err with that outcome.
func Judge(err error, o Outcome) error { return judgement{err, o} }

type judgement struct {
	error
	outcome Outcome
}

func (j judgement) Unwrap() error    { return j.error }
func (j judgement) Outcome() Outcome { return j.outcome }

// refusal is the text with which Redis refused one key of several.
type refusal string

func (r refusal) Error() string { return string(r) }

// explain returns err, the error reply with that text, so that it matches the error of
// package holdfast that it stands for, if any.
func explain(text string, err error) error {
	switch _, of := meaningOf(text); of {
	case nil:
		return err
	case holdfast.ErrWrongType:
		return Matching(err, of) // its text says it already
	default:
		return fmt.Errorf("%w: %w", of, err)
	}
}

// refusedAs is the error with whose text Redis refused one key of several.
func refusedAs(text string) error {
	text = strings.TrimSpace(strings.TrimPrefix(text, "ERR ")) // Redis 6.2 ends some with a line break
	return explain(text, refusal(text))
}

// Matching returns err, with its text, so that it matches of as well.
func Matching(err, of error) error { return matching{err, of} }

type matching struct {
	error
	of error
}

func (m matching) Unwrap() error        { return m.error }
func (m matching) Is(target error) bool { return target == m.of }

// meaning is the outcome of error replies that begin alike.
type meaning struct {
	begin   string
	outcome Outcome
	of      error // the error of package holdfast that it stands for; nil: none
}

// texts are what error replies begin with, and what those come to. Most begin with a
// code; rueidis has taken off the code ERR. The scripts do nothing before their first
// write and undo what they did if a later one is refused. Immutable after init.
var texts = []meaning{
	{"NOSCRIPT ", Unavailable, nil},
	{"TRYAGAIN ", Unavailable, nil},
	{"CLUSTERDOWN ", Unavailable, nil},
	{"LOADING ", Unavailable, nil},
	{"MASTERDOWN ", Unavailable, nil},
	{"READONLY ", Unavailable, nil},
	{"BUSY ", Unavailable, nil},
	{"NOREPLICAS ", Unavailable, nil},
	{"MISCONF ", Unavailable, nil},
	{"OOM ", Unavailable, nil},
	{"max number of clients", Unavailable, nil}, // reached, or with "+ cluster connections"
	{"WRONGPASS ", Refused, nil},
	{"NOAUTH ", Refused, nil},
	{"NOPERM ", Refused, nil},
	{"WRONGTYPE ", Refused, holdfast.ErrWrongType},
	{"CROSSSLOT ", Refused, nil},
	{"DENIED ", Refused, nil},
	{"MOVED ", Refused, nil}, // the client does not follow: it is not made for a Cluster
	{"ASK ", Refused, nil},
	// Without a code, before a script runs:
	{"AUTH <password> called ", Refused, nil}, // the server has no password
	{"Client sent AUTH, ", Refused, nil},      // the same, before Redis 6
	{"invalid password", Refused, nil},        // the same time
	{"DB index is out of range", Refused, nil},
	{"invalid DB index", Refused, nil},
	{"SELECT is not allowed ", Refused, nil},
	{"wrong number of arguments for ", Refused, nil},
	{"Number of keys can't be ", Refused, nil},
	{"Protocol error", Refused, nil},
	{"Error compiling script", Refused, nil},
	{"eval/evalsha" + sameSlot, Refused, nil},
	// By a command in a script, or by the script:
	{"ACL failure in script: ", Refused, nil},              // a right is missing, from Redis 7.2 and in Valkey
	{"The user executing the script can't ", Refused, nil}, // the same, before that
	{"This Redis command is not allowed from script", Refused, nil},
	{"Script attempted to access ", Refused, nil}, // a key of another slot
	{"value is not an integer", Refused, nil},
	{"syntax error", Refused, nil},
	{"user_script:", Refused, nil},
	// A command is missing:
	{"Unknown Redis command called from ", Refused, holdfast.ErrOldServer}, // "Lua script" to Redis 6.2 (src/scripting.c), then "script" (src/script.c)
	{"Unknown command called from ", Refused, holdfast.ErrOldServer},       // Valkey 9
	{"unknown command", Refused, holdfast.ErrOldServer},                    // not in a script (src/server.c)
}

// The scripts refuse arguments and keys with texts of their own.
func init() {
	for _, script := range scripts.Scripts() {
		for _, own := range ownText.FindAllStringSubmatch(script, -1) {
			texts = append(texts, meaning{own[1], Refused, nil})
		}
	}
}

var ownText = regexp.MustCompile(`redis\.error_reply\('ERR ([^']+)'\)`)

// wrapping is what Redis before 7 puts before the error of a command in a script. ERR is left
// in the text of one key of several.
var wrapping = regexp.MustCompile(`^(ERR )?(Error running script \(call to f_[0-9a-f]+\): )?(@user_script: ?[0-9]+: )*-?(ERR )?`)

func unwrapped(text string) string { return text[len(wrapping.FindString(text)):] }

func meaningOf(text string) (Outcome, error) {
	text = unwrapped(text)
	for _, t := range texts {
		if strings.HasPrefix(text, t.begin) {
			return t.outcome, t.of
		}
	}
	if code, _, _ := strings.Cut(text, " "); strings.ToUpper(code) == code {
		return Unknown, nil // a code that we do not know
	}
	return Doubtful, nil
}
