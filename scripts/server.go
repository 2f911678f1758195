package scripts

import (
	"context"
	"strings"
)

// EvictionPolicy returns what Redis does when it is out of memory, as in its
// setting maxmemory-policy; "" if it does not say. Every policy but noeviction
// may drop a lock that is held. It sends INFO, which the scripts do not need and
// a restricted user may lack: the error is Refused then.
func (n *Node) EvictionPolicy(ctx context.Context) (string, error) {
	info, err := n.client.Do(ctx, n.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy), nil
		}
	}
	return "", nil
}
