package single

import (
	"fmt"
	"reflect"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// warnOf logs which options of the client hurt locks. rueidis does not show its options, so
// this reads them from its fields. Only clients for a Sentinel set or a Redis Cluster keep
// them; a wrapper around a client is not looked into.
func warnOf(client rueidis.Client, c *engine.Config) {
	options, of, refresh := "opt", "ClusterOption", "ShardsRefreshInterval"
	switch fmt.Sprintf("%T", client) {
	case "*rueidis.clusterClient":
	case "*rueidis.sentinelClient":
		options, of, refresh = "mOpt", "Sentinel", "TopologyRefreshInterval"
	default:
		return
	}
	if interval, ok := duration(client, options, of, refresh); ok && interval == 0 {
		c.Log.Warn(c.Kind+": the client never refreshes its topology, and may miss a fail-over", "option", of+"."+refresh)
	}
	if timeout, ok := duration(client, options, "ConnWriteTimeout"); ok && timeout > c.Lease/3 {
		c.Log.Warn(c.Kind+": the client may notice too late that a server hangs; set ConnWriteTimeout to a third of the lease at most",
			"timeout", timeout, "lease", c.Lease)
	}
}

// duration returns the value at the path of fields, and whether there is one.
func duration(client rueidis.Client, path ...string) (time.Duration, bool) {
	v := reflect.ValueOf(client)
	for _, name := range path {
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return 0, false
		}
		v = v.FieldByName(name)
	}
	if v.Kind() != reflect.Int64 {
		return 0, false
	}
	return time.Duration(v.Int()), true
}
