package queueing

import "time"

// loop is the loop of the queue, which ends when it is no longer needed. It takes the key's mutex.
func (q *queue) loop() {
	defer q.inbox.Close()
	k := q.key
	for {
		k.Lock()
		now := time.Now()
		q.checkInbox(now)
		paused := now.Before(q.pause) && !q.engine.Calls.CloseTimedOut()
		due := !q.due.IsZero() && !now.Before(q.due)
		enters := q.ready && q.entering == 0 && !paused && q.wanting() && !q.lingering(now)
		leaves := len(q.leaving) > 0 && !paused && !(q.left && (due || enters)) // in turn, if many leave
		switch {
		case leaves:
			list := q.leaving[:min(len(q.leaving), maxEnter)]
			q.leaving = q.leaving[len(list):]
			k.Unlock()
			q.leaveAll(list)
		case due:
			k.Unlock()
			q.sendHeartbeats([]*queue{q})
		case enters:
			list := q.takeOutside()
			q.entering++
			q.left = false
			k.Unlock()
			q.enter(q.brief.Context(), list)
		case q.over(now):
			k.SetState(nil)
			q.Settle(k)
			k.Unlock()
			return
		default:
			alarm, over := q.alarm(now), (<-chan struct{})(nil)
			if len(q.leaving) > 0 {
				over = q.engine.Calls.Base.Done()
			}
			k.Unlock()
			q.rest(alarm.Sub(now), over)
		}
	}
}

// checkInbox watches the inbox: a waiter that enters must be able to receive its grant,
// and a heartbeat must find grants that Redis sent while the inbox was not live.
func (q *queue) checkInbox(now time.Time) {
	inbox := q.inbox.State()
	if inbox.Epoch != q.epoch {
		q.epoch, q.pause = inbox.Epoch, time.Time{} // Redis is back
		if q.ready {
			q.due = now
		}
	}
	if inbox.Live || !now.Before(q.patience) {
		q.ready = true
	}
}

func (q *queue) over(now time.Time) bool {
	if q.key.FirstWaiter() != nil || len(q.tickets) > 0 || len(q.leaving) > 0 || q.entering > 0 {
		return false
	}
	return q.key.Closed() || now.Sub(q.served) >= keepIdle
}

// alarm is when the loop looks at the queue again without a wake-up.
func (q *queue) alarm(now time.Time) time.Time {
	at := now.Add(keepIdle)
	for _, t := range []time.Time{q.due, q.pause, q.patience, q.lingerFrom.Add(linger)} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// rest sleeps until there may be something to do, or until over is closed. It needs no mutex.
func (q *queue) rest(d time.Duration, over <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-q.poke:
	case <-q.inbox.Wake():
	case <-over:
	case <-timer.C:
	}
}
