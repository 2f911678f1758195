// Package planted plants known mistakes in the locks, one at a time, so that the campaigns of internal/testing/sim and the controls
// of the chaos run can show that they find them. The locks' code has no place for them: the command plant writes copies of
// its files with the mistakes, which go test -overlay compiles instead.
package planted

import (
	"os"
	"strings"
)

// Env names the environment variable that chooses a mistake, for a process and its children.
const Env = "HOLDFAST_MISTAKE"

// Mistake is the name of the one that is planted; "": none.
var Mistake = os.Getenv(Env)

// Is reports whether a mistake is planted.
func Is(mistake string) bool { return Mistake == mistake }

// scripts are the mistakes in what Redis runs.
var scripts = []struct{ mistake, from, to string }{
	// A renewal takes the key again that it finds free.
	{"revive the lost", "call('HEXISTS', lock, ARGV[i + 1])",
		"call('EXISTS', lock) == 0 and call('HSET', lock, ARGV[i + 1], '1') or call('HEXISTS', lock, ARGV[i + 1])"},
	{"revive the lost", "not ends or tonumber(ends) <= now", "false"},
	{"revive the lost", "holds, 'XX', ", "holds, "},
	{"revive the lost", "'WITHSCORES')[2])", "'WITHSCORES')[2] or 0)"},
	// A key has one permit more than agreed.
	{"one more", "taken >= tonumber(agreed)", "taken > tonumber(agreed)"},
	// A writer takes the lock beside readers.
	{"write beside readers", "mode == 'write' or mode and writes then", "mode == 'write' then"},
	// Readers do not let writers that wait go first.
	{"no wishes", "or not writes and not ours_next)", "or false)"},
	// A waiter enters at the front of the queue.
	{"last first", "'RPUSH'", "'LPUSH'"},
}

// Script is the text of a script, perhaps with the mistake.
func Script(text string) string {
	for _, s := range scripts {
		if Is(s.mistake) {
			text = strings.ReplaceAll(text, s.from, s.to)
		}
	}
	return text
}
