package demo

import (
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// StartEmbedded starts an embedded server, which forgets everything when the example ends. It
// refuses every command that asks a Redis to keep its data, on a disk or on a replica.
func StartEmbedded(m *miniredis.Miniredis, address string) error {
	m.ClockTTL(true) // otherwise no lease would ever end
	if err := m.StartAddr(address); err != nil {
		return err
	}
	m.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		keeps := slices.Contains([]string{"SAVE", "BGSAVE", "BGREWRITEAOF", "REPLICAOF", "SLAVEOF", "WAIT", "WAITAOF"}, command) ||
			command == "CONFIG" && len(args) > 0 && !strings.EqualFold(args[0], "GET")
		if keeps {
			c.WriteError("ERR refused: this Redis is part of an example and forgets everything when that ends; " +
				"take a real one (-redis host:port) for anything that must last")
		}
		return keeps
	})
	return nil
}
