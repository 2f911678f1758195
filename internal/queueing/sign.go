package queueing

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// Any user with the right to publish can send what looks like a grant. So each owner in
// Redis' queue ends with digits that only its locker can make. A message for any other owner
// is ignored: it must neither give a waiter the key, nor make the locker give up an attempt
// that is under way, or an owner of another locker.

const signDigits = 16

// newSignedOwner is NewOwner for a place in Redis' queue.
func (d *discipline) newSignedOwner() string {
	owner := d.engine.NewOwner()
	return owner + d.sign(owner)
}

func (d *discipline) sign(owner string) string {
	sum := sha256.Sum256(append(d.secret[:], owner...))
	digits := strconv.FormatUint(binary.BigEndian.Uint64(sum[:])%1e16, 10)
	return strings.Repeat("0", signDigits-len(digits)) + digits
}

// signed reports whether an owner is of newSignedOwner, or of longOwner.
func (d *discipline) signed(owner string) bool {
	padded, ours := strings.CutPrefix(owner, d.engine.LockerID+":0")
	number := strings.TrimLeft(padded, "0")
	at := len(number) - signDigits
	return ours && len(owner) <= 2*longest && at > 0 && number[at:] == d.sign(d.engine.LockerID+":0"+number[:at])
}
