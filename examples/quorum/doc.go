// Quorum counts under a lock on five independent Redis masters while two of them
// at a time are killed, restarted empty or paused, and then says whether two were
// ever inside together.
//
//	go run ./examples/quorum                  20 s on five redis-servers, or embedded ones if there are none
//	go run ./examples/quorum -guard=false     without restart guard, while a majority restarts: two get inside
//	go run ./examples/quorum -embedded        on five servers inside this program
//
// # What is counted
//
// Goroutines of four lockers, each with connections of its own to all masters, do
// the same again and again:
//
//	Lock(counter)        three of five nodes say yes
//	  read the value     a plain variable of this program
//	  stay a moment      1 to 5 ms, now and then a quarter of the lease
//	  write it + 1       unless the lease was lost meanwhile
//	Unlock
//
// Nothing but the lock keeps two of them from reading the same value. The program
// keeps a record of who is inside, too: that somebody enters while another is
// inside whose lease lives is a double hold. At the end the value must be the
// number of sections, and there must have been no double hold.
//
// # What is done to the nodes
//
// In turns of two nodes, chosen at random: killed, and started again after a
// while; restarted at once; paused, so that connections stay open and nothing is
// answered. Nothing is persisted: who restarts has forgotten all locks. Between
// two turns there is a little more than a lease of rest, so that what one turn
// takes from a lease and what the next takes are never of the same lease.
//
// A node that has restarted has no vote for the longest lease, since it may have
// forgotten one: that is the restart guard, without which a majority that restarts
// within a lease gives the lock away twice. -guard=false does just that.
//
// # Embedded servers
//
// They have no run id, by which a restart is known, and so no guard: therefore they
// keep their memory, but with -guard=false. Killed means there that the server is
// closed, restarted that it listens again, paused that commands are taken and not
// carried out.
package main
