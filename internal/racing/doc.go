// Package racing is the discipline of lock kinds whose processes race for a key. The waiters of
// a process queue here, and one loop tries for all of them. At every moment exactly one of
// these has the key in hand:
//
//	   Lock of a key that nobody here has or wants
//	              │
//	        first attempt ──── acquired ─────────────────┐
//	              │ refused                              ▼
//	              └──────▶ the race's loop ─ acquired ▶ hold ─┐ hand-over to
//	               ▲  ▲    subscribe, try,               │    │ the next waiter
//	others wait    │  │    sleep, try again              │ ◀──┘
//	               │  └───────────── lost ───────────────┤
//	               └─────────── release ◀────── Unlock ──┘
//
// Racing is correct without hand-over (a hold passes from section to section in memory)
// and turns.go (processes take turns): both only make it fast and fair.
package racing
