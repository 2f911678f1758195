package main

// mistakes are edits of the locks' files. MISTAKE is true while the mistake is planted. The text
// to replace stands once in its file.
var mistakes = []struct{ name, file, from, to string }{
	// A lease counts from the reply, and not from the start of the call.
	{"trust from the reply", "internal/engine/attempt.go",
		"	a := Attempt{Start: start,",
		"	if MISTAKE { start = time.Now() }\n	a := Attempt{Start: start,"},
	{"trust from the reply", "watchdog/call.go",
		"		now := w.now()\n",
		"		now := w.now()\n		if MISTAKE { c.start = now }\n"},
	// A lease counts from the message of its grant.
	{"trust from the grant", "internal/queueing/grant.go",
		"time.Since(t.start) < g.Lease/2 &&",
		"(MISTAKE || time.Since(t.start) < g.Lease/2) &&"},
	{"trust from the grant", "internal/queueing/grant.go",
		"engine.Terms{Lease: g.Lease}\n",
		"engine.Terms{Lease: g.Lease}\n	if MISTAKE { t.start = time.Now() }\n"},
	// One node decides a renewal.
	{"one node renews", "internal/quorum/renew.go",
		"int(rn.yes[i]) >= rn.q.need:",
		"int(rn.yes[i]) >= rn.q.need || MISTAKE && rn.yes[i] > 0:"},
	// A minority makes a quorum.
	{"two of five", "internal/quorum/quorum.go",
		"	q.need = q.quorum",
		"	if MISTAKE { q.quorum-- }\n	q.need = q.quorum"},
	// A node votes although it has just forgotten.
	{"no quarantine", "internal/quorum/guard.go",
		"	s, err := n.mark(ctx)\n",
		"	s, err := n.mark(ctx)\n	if MISTAKE && err == nil && s.Vote == nil { s, err = n.check(ctx, wire.Activate, s.Incarnation) }\n"},
	// An owner that is given up leaves no tombstone.
	{"no tombstones", "internal/racing/racing.go", "Owner: owner, Doubt: true}", "Owner: owner, Doubt: !MISTAKE}"},
	{"no tombstones", "internal/quorum/hold.go", "Doubt: p.doubt > 0}", "Doubt: p.doubt > 0 && !MISTAKE}"},
	// An acquire of unknown outcome is not undone.
	{"no undo of acquires", "internal/engine/attempt.go", "if wire.OutcomeOf(a.Err).MayHaveRun() {", "if wire.OutcomeOf(a.Err).MayHaveRun() && !MISTAKE {"},
	// A hold that is lost by silence is not undone.
	{"no undo of losses", "internal/engine/hold.go", "|| why == watchdog.ErrDeadline ||", "|| why == watchdog.ErrDeadline && !MISTAKE ||"},
	// A waiter that gives up leaves its owner in the queue.
	{"no leave", "internal/queueing/queue.go", "		q.leave(t.owner,", "		if MISTAKE { return }\n		q.leave(t.owner,"},
	// A failed round stays on the nodes that said yes.
	{"no giving up", "internal/quorum/round.go", "	q.giveUp(h, false)\n	return r.failed()", "	if !MISTAKE { q.giveUp(h, false) }\n	return r.failed()"},
	// A connection that was lost, and a new one, are no reason to try again.
	{"deaf reconnect", "internal/racing/rest.go", "seen.Epoch != before.Epoch:", "seen.Epoch != before.Epoch && !MISTAKE:"},
	{"deaf reconnect", "internal/racing/rest.go", "blind.Before(wake) {", "blind.Before(wake) && !MISTAKE {"},
	// A heartbeat does not find grants whose message was lost.
	{"deaf heartbeat", "internal/queueing/heartbeat.go", "	q.noteGrant(wire.FairReply{Heart", "	if MISTAKE { return }\n	q.noteGrant(wire.FairReply{Heart"},
	// A release ends the hold of any owner.
	{"release any", "internal/single/rlock.go",
		"	h.Notify = true\n",
		"	h.Notify = true\n	if MISTAKE && !h.Doubt {\n		_, err := r.ForceRelease(ctx, h.Key)\n		return wire.ReleaseReply{Ours: true}, err\n	}\n"},
	// A release that was repeated and finds nothing is a loss.
	{"repeat is loss", "internal/engine/release.go", "|| r.doubt ||", "|| r.doubt && !MISTAKE ||"},
	// Unlock returns nil after a loss.
	{"nil after loss", "internal/engine/release.go", "		return cause\n", "		if MISTAKE && errors.Is(cause, holdfast.ErrLost) { return nil }\n		return cause\n"},
	{"nil after loss", "internal/engine/release.go", "	\"context\"\n", "	\"context\"\n	\"errors\"\n"},
	// The end of a lease is told a little late.
	{"late done", "watchdog/schedule.go", "		for _, e := range over {\n", "		if MISTAKE && len(over) > 0 { time.Sleep(50 * time.Millisecond) }\n		for _, e := range over {\n"},
	// A handover in memory gives the same fence again.
	{"fence twice", "internal/engine/handover.go", "f := h.fences(); f != nil {", "f := h.fences(); f != nil && !MISTAKE {"},
	// A handover in memory passes on a fixed or capped lease to a waiter that asked for another.
	{"hand over any", "internal/engine/handover.go", "|| !h.isDefault {", "|| !h.isDefault && !MISTAKE {"},
	// A reader that leaves ends the hold that it shares with others.
	{"end the shared", "internal/engine/share.go",
		"	return len(h.extras.sections) > 0\n",
		"	if e := h.Key.engine; MISTAKE { e.Calls.Background(func() { _, _ = e.discipline.Release(e.Calls.Context(), h, 0) }) }\n	return len(h.extras.sections) > 0\n"},
	// The mistakes in scripts are in package planted.
	{"", "internal/wire/redis.go",
		"	if r.Cluster != nil {\n		return r.invokeInCluster(",
		"	if text := planted.Script(s.text); text != s.text { s = scriptOf(text) }\n	if r.Cluster != nil {\n		return r.invokeInCluster("},
}
