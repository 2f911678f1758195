package wire

import (
	"cmp"
	"context"
	"strconv"
	"strings"
)

// EvictionPolicy returns what Redis does when it is out of memory, as its setting maxmemory-policy
// says; "" if it does not say. Every policy but noeviction may drop a lock that is held. On a Redis
// Cluster, the result is such a policy if any node has one, whatever the others say. It sends INFO, which the scripts do not
// need and a restricted user may lack: the error is Refused then.
func (o *onRedis) EvictionPolicy(ctx context.Context) (policy string, err error) {
	r := o.redis
	if r.Cluster == nil {
		return r.info(ctx, "memory", "maxmemory_policy")
	}
	for _, node := range r.client.Nodes() {
		one, failed := NewRedis(node, RedisSettings{}).info(ctx, "memory", "maxmemory_policy")
		if one != "" && Evicts(one) {
			return one, nil
		}
		policy, err = cmp.Or(one, policy), cmp.Or(failed, err)
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

// Evicts reports whether a server with this maxmemory-policy may drop a held lock when it runs
// out of memory.
func Evicts(policy string) bool { return policy != "noeviction" }

// AtLeast reports whether the version of a server, such as "7.0.15", is that or a later one.
func AtLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(first)
	b, _ := strconv.Atoi(second) // none is 0
	return err == nil && (a > major || a == major && b >= minor)
}
