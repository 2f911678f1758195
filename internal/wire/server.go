package wire

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/internal/check"
)

// EvictionPolicy returns what Redis does when it is out of memory, as its setting maxmemory-policy
// says; "" if it does not say. Every policy but noeviction may drop a lock that is held. On a Redis
// Cluster, the result is such a policy if any node has one. It sends INFO, which the scripts do not
// need and a restricted user may lack: the error is Refused then.
func (r *Redis) EvictionPolicy(ctx context.Context) (policy string, err error) {
	if r.Cluster == nil {
		return r.info(ctx, "memory", "maxmemory_policy")
	}
	for _, node := range r.client.Nodes() {
		one, failed := NewRedis(node).info(ctx, "memory", "maxmemory_policy")
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
func (r *Redis) runID(ctx context.Context) (string, error) { return r.info(ctx, "server", "run_id") }

func (r *Redis) info(ctx context.Context, section, field string) (string, error) {
	info, err := r.client.Do(ctx, r.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return "", r.callError(ctx, 0, err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// Ping asks whether the node answers; a refusal is an answer.
func (r *Redis) Ping(ctx context.Context) error {
	err := r.callError(ctx, 0, r.client.Do(ctx, r.client.B().Ping().Build()).Error())
	if OutcomeOf(err).Final() {
		return nil
	}
	return err
}
