// Package clientopt looks at the options of a rueidis client.
package clientopt

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Warn logs, for a lock kind with that lease, which options of the client hurt locks. rueidis
// does not show its options, so this reads them from its fields: a client for a Sentinel set
// or a Redis Cluster keeps them all, one of a single server has its write time-out in its
// connection. A wrapper around a client is not looked into.
func Warn(client rueidis.Client, log *slog.Logger, kind string, lease time.Duration) {
	v := reflect.ValueOf(client)
	var timeout, interval reflect.Value
	var option string
	switch fmt.Sprintf("%T", client) {
	case "*rueidis.clusterClient":
		option = "ClusterOption.ShardsRefreshInterval"
		interval, timeout = field(v, "opt", "ClusterOption", "ShardsRefreshInterval"), field(v, "opt", "ConnWriteTimeout")
	case "*rueidis.sentinelClient":
		option = "Sentinel.TopologyRefreshInterval"
		interval, timeout = field(v, "mOpt", "Sentinel", "TopologyRefreshInterval"), field(v, "mOpt", "ConnWriteTimeout")
	case "*rueidis.singleClient":
		timeout = field(connection(field(v, "conn", "muxwires")), "timeout")
	}
	if interval.Kind() == reflect.Int64 && interval.Int() == 0 {
		log.Warn("holdfast: "+kind+": the client never refreshes its topology, and may miss a fail-over", "option", option)
	}
	if timeout.Kind() == reflect.Int64 && time.Duration(timeout.Int()) > lease/3 {
		log.Warn("holdfast: "+kind+": the client may notice too late that a server hangs; set ConnWriteTimeout to a third of the lease at most",
			"timeout", time.Duration(timeout.Int()), "lease", lease)
	}
}

// connection returns the first connection of a single server's client.
func connection(wires reflect.Value) (none reflect.Value) {
	if wires.Kind() != reflect.Slice || wires.Len() == 0 {
		return none
	}
	wire := field(wires.Index(0), "wire")
	if !wire.IsValid() || wire.Type() != reflect.TypeFor[atomic.Value]() {
		return none
	}
	return reflect.ValueOf((*atomic.Value)(wire.Addr().UnsafePointer()).Load())
}

// field returns the value at the path of fields; an invalid one if there is none.
func field(v reflect.Value, path ...string) (none reflect.Value) {
	for _, name := range path {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return none
		}
		v = v.FieldByName(name)
	}
	return v
}
