package pubsub

// phase is what the server knows of a channel on the present connection.
type phase uint8

const (
	absent  phase = iota // not subscribed, nothing under way
	joining              // SUBSCRIBE sent
	joined               // confirmed
	leaving              // UNSUBSCRIBE sent
	refused              // SUBSCRIBE was refused; asked again after the long back-off
)

// channel is one name with its listeners. At most one command for it is under way at a time, so an acknowledgement
// always belongs to the last command. All fields but name are guarded by Subscriber.mu.
type channel struct {
	name     string // immutable
	phase    phase
	queued   bool // in Subscriber.queue
	subs     []*Subscription
	epoch    uint64 // confirmations
	messages uint64 // messages received
}

func (ch *channel) wanted() bool { return len(ch.subs) > 0 }

// due tells whether the phase calls for a command.
func (ch *channel) due() bool {
	return ch.wanted() && ch.phase == absent || !ch.wanted() && ch.phase == joined
}

func (ch *channel) add(sub *Subscription) {
	sub.ch, sub.index = ch, len(ch.subs)
	sub.epoch, sub.messages = ch.epoch, ch.messages
	ch.subs = append(ch.subs, sub)
	if ch.phase == joined { // the confirmation that the channel lives by counts for this listener too
		sub.epoch--
		sub.notify()
	}
}

func (ch *channel) remove(sub *Subscription) {
	last := len(ch.subs) - 1
	ch.subs[sub.index] = ch.subs[last]
	ch.subs[sub.index].index = sub.index
	ch.subs[last] = nil
	ch.subs = ch.subs[:last]
	sub.ch = nil
}

func (ch *channel) notify() {
	for _, sub := range ch.subs {
		sub.notify()
	}
}

// settle is called with mu held after every change of a channel's phase or listeners: it forgets a channel that nobody
// wants and the server does not know, and queues one that needs a command.
func (s *Subscriber) settle(ch *channel) {
	switch {
	case ch.phase == absent && !ch.wanted():
		delete(s.channels, ch.name)
	case ch.due() && !ch.queued:
		ch.queued = true
		s.queue = append(s.queue, ch)
		fill(s.poke)
	}
}

// next takes up to most channels out of the queue and marks the command that each of them needs as under way.
func (s *Subscriber) next(most int) (join, leave []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && len(join)+len(leave) < most {
		ch := s.queue[0]
		s.queue[0], s.queue = nil, s.queue[1:]
		ch.queued = false
		switch {
		case !ch.due():
		case ch.wanted():
			ch.phase = joining
			join = append(join, ch.name)
		default:
			ch.phase = leaving
			leave = append(leave, ch.name)
		}
	}
	if len(s.queue) == 0 {
		s.queue = nil // gives the memory back
	}
	return join, leave
}

// move takes the named channels from one phase to another; channels in any other phase stay as they are.
func (s *Subscriber) move(names []string, from, to phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if ch := s.channels[name]; ch != nil && ch.phase == from {
			ch.phase = to
			s.settle(ch)
		}
	}
}

// detach forgets what the server of the lost connection knew, wakes the listeners that were live and queues every
// wanted channel.
func (s *Subscriber) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = nil
	for _, ch := range s.channels {
		if ch.phase == joined {
			ch.notify()
		}
		ch.phase = absent
		s.settle(ch)
	}
}

// onSubscription handles an acknowledgement. It runs beside the connection's reader.
func (s *Subscriber) onSubscription(l *link, kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if s.link != l || ch == nil {
		return
	}
	switch {
	case kind == "subscribe" && ch.phase == joining:
		ch.phase = joined
		ch.epoch++
		ch.notify()
	case kind == "unsubscribe" && ch.phase == leaving:
		ch.phase = absent
	}
	s.settle(ch)
}

// onMessage counts a message and wakes the listeners of its channel, or gives them the message. It runs beside the
// connection's reader.
func (s *Subscriber) onMessage(l *link, name, message string) {
	s.mu.Lock()
	ch := s.channels[name]
	if s.link != l || ch == nil {
		s.mu.Unlock()
		return
	}
	ch.messages++
	hearers := make([]func(string), 0, 2)
	for _, sub := range ch.subs {
		if sub.hear != nil {
			hearers = append(hearers, sub.hear)
		} else {
			sub.notify()
		}
	}
	s.mu.Unlock()
	for _, hear := range hearers {
		hear(message)
	}
}
