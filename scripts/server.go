package scripts

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
)

// EvictionPolicy returns what Redis does when it is out of memory, as in its
// setting maxmemory-policy; "" if it does not say. Every policy but noeviction
// may drop a lock that is held; of the nodes of a Redis Cluster, such a one counts. It
// sends INFO, which the scripts do not need and a restricted user may lack: the error is
// Refused then.
func (n *Node) EvictionPolicy(ctx context.Context) (policy string, err error) {
	if n.Cluster == nil {
		return n.info(ctx, "memory", "maxmemory_policy")
	}
	for _, node := range n.client.Nodes() {
		one, failed := NewNode(node).info(ctx, "memory", "maxmemory_policy")
		if failed != nil {
			err = failed
		} else if policy == "" || !check.Evicts(policy) {
			policy = one
		}
	}
	return policy, err
}

// runID returns the id of the server's process; "" if it does not say. For its
// errors see EvictionPolicy.
func (n *Node) runID(ctx context.Context) (string, error) { return n.info(ctx, "server", "run_id") }

func (n *Node) info(ctx context.Context, section, field string) (string, error) {
	info, err := n.client.Do(ctx, n.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return "", n.allowed(0, explained(err))
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// Ping asks whether the node answers; a refusal is an answer.
func (n *Node) Ping(ctx context.Context) error {
	err := n.allowed(0, n.client.Do(ctx, n.client.B().Ping().Build()).Error())
	if OutcomeOf(err).Final() {
		return nil
	}
	return err
}
