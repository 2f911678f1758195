package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
)

// Subscriber holds the subscriptions of one client, on one connection for each node. All methods may be called
// concurrently.
type Subscriber struct {
	// Immutable after New.
	client     rueidis.Client
	slots      Slots                               // nil: one Redis
	askSharded func(context.Context) (bool, error) // nil: one Redis
	log        *slog.Logger
	pace       pace
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	strayed    chan struct{} // one slot: some channel may have to move

	loops sync.WaitGroup // of the nodes, and route; none begins after closed

	mu      sync.Mutex
	started bool             // guarded by mu; route runs
	closed  bool             // guarded by mu
	placing bool             // guarded by mu; only route changes it, and reads it without; channels can be placed: on a Cluster once it is known whether they are sharded
	sharded bool             // guarded by mu; fixed once placing is true
	nodes   map[string]*node // guarded by mu; by address; "" is the one Redis, or nobody on a Cluster
}

// pace holds the delays of the loop.
type pace struct {
	most      time.Duration // longest back-off after a failure
	long      time.Duration // longest back-off while the server is unreachable, see redialling
	stood     time.Duration // after a connection that lasted longer, the first try comes immediately
	refused   time.Duration // back-off after a refusal that only an operator can lift
	slow      time.Duration // after which a connection that does not come is logged: a dial has ended by then
	answer    time.Duration // longest wait for the answer to a command; a question on the connection of calls may go on unheard
	grace     time.Duration // longest wait of Close for the connection to end
	verify    time.Duration // between questions whether the connection is deaf
	deaf      time.Duration // longest time for which a connection is kept that was always deaf, and pause between them while the user may not ask
	unsettled time.Duration // longest back-off of looks at a Cluster's slots while a channel has no node
	settled   time.Duration // and when all have one; that begins with most
}

// answer is bounded by Redis' busy-reply-threshold: see (*link).unsubscribe.
var defaultPace = pace{
	most:      time.Second,
	long:      50 * time.Millisecond,
	stood:     100 * time.Millisecond,
	refused:   5 * time.Second,
	slow:      6 * time.Second,
	answer:    2 * time.Second,
	grace:     1500 * time.Millisecond,
	verify:    time.Second,
	deaf:      30 * time.Second,
	unsettled: 300 * time.Millisecond,
	settled:   10 * time.Second,
}

// redialling is the back-off while a server is unreachable: a sixteenth of its absence. Immutable.
var redialling = loop.Backoff{Nth: 16}

// New returns a Subscriber on client, which must not be nil, stays the caller's and may be shared. It does no I/O and
// starts no goroutine before the first Subscribe. From then on the Subscriber takes one dedicated connection of the
// client (two under RESP2, where rueidis keeps subscriptions apart).
//
// log reports when the connection is lost, refused or restored and when channels are refused: one line for each change,
// not one for each attempt, and no channel names. Nil: nothing is logged.
func New(client rueidis.Client, log *slog.Logger) *Subscriber {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Subscriber{
		client:  client,
		log:     log,
		pace:    defaultPace,
		strayed: make(chan struct{}, 1),
		placing: true,
		nodes:   make(map[string]*node),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Slots says which node of a Redis Cluster has which slot. Its methods may be called concurrently.
type Slots interface {
	// Node is the address, as in client.Nodes(), of the master that has the slot of a key or channel of this name; "" as
	// long as none is known.
	Node(name string) string
	// Masters are the addresses of all masters that have slots.
	Masters() []string
	// Refresh asks the cluster again.
	Refresh(ctx context.Context) error
}

// NewCluster is New for a client of a Redis Cluster with these slots. There the Subscriber takes a connection
// to each master that has one of its channels' slots, and subscribes each channel on the master of its slot, by
// SSUBSCRIBE if sharded says so, otherwise by SUBSCRIBE. sharded is asked again until it answers without an
// error.
func NewCluster(
	client rueidis.Client, slots Slots, sharded func(context.Context) (bool, error), log *slog.Logger,
) *Subscriber {
	s := New(client, log)
	s.slots, s.askSharded, s.placing = slots, sharded, false
	return s
}

// Subscribe adds a listener to the channel of exactly this name. It neither blocks nor fails: the subscription becomes live
// when the server has confirmed it (immediately if the channel is already live), is subscribed again after every loss of
// the connection, and lasts until its Close. After the Subscriber's Close it never becomes live. Cost: one SUBSCRIBE for
// the first listener of a channel. The same SUBSCRIBE also carries other new channels and, except on a Cluster, the
// Subscriber's own channel if there is none yet. Other listeners cost nothing. A new connection also costs a PUBSUB NUMSUB.
func (s *Subscriber) Subscribe(name string) *Subscription { return s.SubscribeFunc(name, nil) }

// SubscribeFunc is Subscribe for a listener that wants the messages themselves: each is handed to hear, in their order,
// instead of waking the listener. hear runs on the reader of the connection and must not block; it may be called once
// more while Close runs, and may call all methods but the Subscriber's Close.
func (s *Subscriber) SubscribeFunc(name string, hear func(message string)) *Subscription {
	return s.subscribe(name, &Subscription{wake: make(chan struct{}, 1), hear: hear})
}

// SubscribeOn is Subscribe with a wake-up channel of the caller's, which must have one slot and which subscriptions, also
// of several servers, may share.
func (s *Subscriber) SubscribeOn(name string, wake chan struct{}) *Subscription {
	return s.subscribe(name, &Subscription{wake: wake})
}

func (s *Subscriber) subscribe(name string, sub *Subscription) *Subscription {
	sub.s = s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		newNode(s, "").listen(name, sub) // its loop never begins
		return sub
	}
	if s.slots != nil && !s.started {
		s.started = true
		s.loops.Go(s.route)
	}
	s.home(name).listen(name, sub)
	return sub
}

// Close ends every subscription, drops the connections, so that the servers forget all channels, and waits for the
// Subscriber's goroutines. Listeners that were live are woken. The wait ends without them after 1.5 s: a server that
// is silent, or a dial that hangs, is given up in the background, at most one dial timeout of the client later. A question
// on the connection of the client's calls (see verify.go) ends with that connection, or with the client.
// Close may be called repeatedly.
func (s *Subscriber) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.loops.Wait()
}
