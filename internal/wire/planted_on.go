//go:build planted

package wire

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/planted"
)

// withMistake is s, or s with a mistake of package planted.
func withMistake(s script) script {
	is := func(of script) bool { return s.sha == of.sha || of.each != nil && s.sha == of.each.sha }
	switch {
	case planted.ReviveLost && is(renew):
		return scriptOf(strings.Replace(s.text, "call('HEXISTS', lock, ARGV[i + 1])",
			"call('EXISTS', lock) == 0 and call('HSET', lock, ARGV[i + 1], '1') or call('HEXISTS', lock, ARGV[i + 1])", 1))
	case planted.ReviveLost && is(semaphoreRenew):
		return scriptOf(strings.NewReplacer("not ends or tonumber(ends) <= now", "false", "'XX', ", "", "'WITHSCORES')[2])", "'WITHSCORES')[2] or 0)").Replace(s.text))
	case planted.OneMore && is(semaphoreAcquire):
		return scriptOf(strings.Replace(s.text, "taken >= tonumber(agreed)", "taken > tonumber(agreed)", 1))
	case planted.WriteBeside && is(rwlockAcquire):
		return scriptOf(strings.Replace(s.text, "mode == 'write' or mode and writes then", "mode == 'write' then", 1))
	case planted.NoWishes && is(rwlockAcquire):
		return scriptOf(strings.Replace(s.text, "or not writes and not ours_next)", "or false)", 1))
	case planted.LastFirst && is(fairEnter):
		return scriptOf(strings.Replace(s.text, "'RPUSH'", "'LPUSH'", 1))
	}
	return s
}
