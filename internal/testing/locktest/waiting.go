package locktest

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

// The lock kinds differ in where Redis shows their waiters, and in what serves them; the
// cases ask here.

// OfKey is the name of something that belongs to key: as the channel's, with
// another prefix.
func OfKey(prefix, key string) string {
	return prefix + strings.TrimPrefix(scripts.Channel(key), "redisson_lock__channel")
}

func QueueOf(key string) string  { return OfKey("redisson_lock_queue", key) }
func ScoresOf(key string) string { return OfKey("redisson_lock_timeout", key) }

// InboxOf is the channel on which a client of a fair lock hears of its grants.
func InboxOf(key, owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return scripts.Channel(key) + ":" + client
}

// Queued are the owners that wait for key on a fair lock, in their order.
func Queued(t testing.TB, s Redis, key string) []string {
	t.Helper()
	return Strings(t, s, "LRANGE", QueueOf(key), "0", "-1")
}

// Channel is notified when key is released.
func (k Kind) Channel(key string) string {
	switch {
	case k.Permits:
		return scripts.SemaphoreChannel(key)
	case k.ReadWrite:
		return scripts.RWLockChannel(key)
	}
	return scripts.Channel(key)
}

// Waiting is how many clients wait for key, as Redis sees it: they listen to its
// releases, or stand in its queue.
func (k Kind) Waiting(t testing.TB, s Redis, key string) int {
	t.Helper()
	if !k.Fair {
		n := Listeners(t, s, k.Channel(key))
		for _, one := range servers(s) {
			if Listeners(t, one, k.Channel(key)) != n {
				return -1 // of a topology, some have not been told yet
			}
		}
		return n
	}
	clients := map[string]bool{}
	for _, owner := range Queued(t, s, key) {
		client, _, _ := strings.Cut(owner, ":")
		clients[client] = true
	}
	return len(clients)
}

// Listeners is how many clients have subscribed to a channel, or a shard channel.
func Listeners(t testing.TB, s Redis, channel string) (n int) {
	t.Helper()
	of := servers(s)[0]
	for _, kind := range channelKinds(of) {
		reply := Must(of.Do(t, "PUBSUB", kind+"NUMSUB", channel).AsIntMap())(t)
		n += int(reply[channel])
	}
	return n
}

// Publish sends a message to a channel, and to the shard channel of that name. It returns
// how many got it.
func Publish(t testing.TB, s Redis, channel, message string) (n int) {
	t.Helper()
	n = Number(t, s, "PUBLISH", channel, message)
	if len(channelKinds(servers(s)[0])) > 1 {
		n += Number(t, s, "SPUBLISH", channel, message)
	}
	return n
}

// Channels are those that have subscribers, but for those by which a subscriber learns that it
// is not deaf.
func Channels(t testing.TB, s Server) (all []string) {
	t.Helper()
	for _, kind := range channelKinds(s) {
		all = append(all, Strings(t, s, "PUBSUB", kind+"CHANNELS")...)
	}
	return slices.DeleteFunc(all, func(c string) bool { return strings.Contains(c, ":self:") })
}

// channelKinds begin the sub-commands of PUBSUB.
func channelKinds(s Server) []string {
	if _, err := s.TryDo("PUBSUB", "SHARDCHANNELS"); err != nil {
		return []string{""}
	}
	return []string{"", "SHARD"}
}

// left is what waits have left of key: subscriptions, and names of places in a
// queue.
func (k Kind) left(t testing.TB, s Redis, key string) []string {
	t.Helper()
	var all []string
	for _, one := range servers(s) {
		all = append(all, Channels(t, one)...)
	}
	channel := k.Channel(key)
	all = slices.DeleteFunc(all, func(c string) bool { return c != channel && !strings.HasPrefix(c, channel+":") })
	for _, name := range []string{QueueOf(key), ScoresOf(key)} {
		if Exists(t, s, name) {
			all = append(all, name)
		}
	}
	return all
}

// MaxProbes is the largest number of attempts of a wait before it sleeps: one before the
// subscription and one after. A quorum sleeps when enough of its nodes have confirmed
// theirs, and tries again for each node that confirms later, as it may have missed a
// message of that node.
func (k Kind) MaxProbes() int { return 1 + max(k.Nodes, 1) }

// WaitVerb is the script with the reply that makes a client's first waiter wait, after its
// subscription: another attempt, or the enter of the queue.
func (k Kind) WaitVerb() string {
	if k.Fair {
		return "enter"
	}
	return "acquire"
}

// GrantVerb is the script with the reply that brings a key from one waiter of a client to
// the next without handover.
func (k Kind) GrantVerb() string {
	if k.Fair {
		return "release"
	}
	return "acquire"
}

// Fields are the fields of the hash of a key that owner holds so many times, of read/write locks as
// a writer.
func (k Kind) Fields(owner, count string) []string {
	if !k.ReadWrite {
		return []string{owner, count}
	}
	return []string{"mode", "write", strings.TrimSuffix(owner, wire.WriteSuffix) + wire.WriteSuffix, count}
}

// OfAnotherKind are the fields of a hash that is a lock, but not of the kind.
func (k Kind) OfAnotherKind() []string { return Kind{ReadWrite: !k.ReadWrite}.Fields(Java, "1") }

// Java is the owner of a Java client that holds a key by Fields.
func (k Kind) Java() string {
	fields := k.Fields(Java, "1")
	return fields[len(fields)-2]
}

// Java is an owner of a Java client.
const Java = "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1"
