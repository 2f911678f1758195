package wire

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A name may move from one server to another, while connections stay where they are: on
// the old master, which lives on as a replica and refuses every write. So a client of one
// server leaves a replica, and dials its name again. Clients of a Sentinel set or a Redis
// Cluster find the master by themselves.

// redialPause is the least time between two redials of a client: until the name moves, each
// new connection reaches the replica again.
const redialPause = time.Second

// redialed are the clients that redialed less than redialPause ago. Several nodes may
// share a client, and what one of them hears late must not end the new connection.
var redialed sync.Map

// redial makes the client dial again for the calls that follow. QUIT needs no right, and
// Redis carries out nothing that comes behind it on the connection: what others have sent
// there by then ends with an unknown outcome, or is repeated by rueidis if it only reads.
// The PING behind it makes rueidis notice the end of the connection before a call does.
func (r *Redis) redial(ctx context.Context) {
	if r.client.Mode() != rueidis.ClientModeStandalone {
		return
	}
	who := any(r)
	if reflect.ValueOf(r.client).Comparable() {
		who = r.client
	}
	if _, lately := redialed.LoadOrStore(who, nil); lately {
		return
	}
	time.AfterFunc(redialPause, func() { redialed.Delete(who) })
	r.client.DoMulti(ctx, r.client.B().Arbitrary("QUIT").Build(), r.client.B().Arbitrary("PING").Build())
}

// byReplica reports whether a replica refused a call, or what the call does with one key of
// several. Replies also hold texts of users, such as labels, so only the whole text of Redis
// counts.
func byReplica(reply rueidis.RedisMessage, err error) bool {
	if re, ok := err.(*rueidis.RedisError); ok {
		return strings.HasPrefix(unwrapped(re.Error()), "READONLY ")
	}
	if err != nil || !reply.IsArray() {
		return false
	}
	answers, _ := reply.ToArray()
	for _, a := range answers {
		if alone, err := arrayOf(a, nil, 1); err == nil { // perhaps {text}
			a = alone[0]
		}
		if a.IsString() {
			if text, _ := a.ToString(); isReadOnly(text) {
				return true
			}
		}
	}
	return false
}

const readOnly = "READONLY You can't write against a read only "

func isReadOnly(text string) bool {
	return strings.Contains(text, readOnly) && strings.HasPrefix(unwrapped(text), readOnly)
}
