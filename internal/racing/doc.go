// Package racing is the discipline of lock kinds whose processes race for a key. The waiters of
// a process wait here in order, and one loop tries for all of them. A key with one hold is,
// at every moment, in exactly one of these:
//
//	   Lock of a key that nobody here has or wants
//	              │
//	        first attempt ──── acquired ─────────────────┐
//	              │ not free                             ▼
//	              └──────▶ the race's loop ─ acquired ▶ hold ─┐ handover to
//	               ▲  ▲    subscribe, try,               │    │ the next waiter
//	others wait    │  │    sleep, try again              │ ◀──┘
//	               │  └───────────── lost ───────────────┤
//	               └─────────── release ◀────── Unlock ──┘
//
// With engine.ManyHolds or SharedHolds, first attempts, the loop and holds of a key run in parallel. The loop
// runs as long as there are waiters, also while the key is held here. With ManyHolds, the
// more attempts succeed, the more it makes in parallel (see widen). It hears the releases of its own process too. They do not
// count as another's turn.
//
// A hold passes from section to section in memory (handover), and processes take turns
// (turns.go). Racing is correct without either: they only make it fast and fair.
//
// # The files
//
//	racing.go   what the engine calls: the discipline
//	race.go     the race for a key, its loop, and what it does with the result of an attempt
//	rest.go     how the loop waits for a reason to try again
//	turns.go    when it lets other processes go first
//	backend.go  what racing needs of a backend
package racing
