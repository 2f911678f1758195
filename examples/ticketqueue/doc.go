// Ticketqueue lets customers of several processes queue for one counter, and
// shows the order in which they came beside the order in which they were served:
// with the fair lock it is the same, over all processes, whoever dies.
//
//	go run ./examples/ticketqueue                            200 customers; two processes die
//	go run ./examples/ticketqueue -guard=rlock               the same under a lock that is not fair
//	go run ./examples/ticketqueue -kill=false                nobody dies
//	go run ./examples/ticketqueue -arrivals arrivals.csv     customers of your own
//	go run ./examples/ticketqueue -redis localhost:6379      on a real Redis
//
// # What happens to a customer
//
// The parent starts this program again for each process, and has each customer
// come to one of them, at random, when it is due. There
//
//	Do(counter)                take a place in the queue and wait for the turn
//	  GET served               a plain list in Redis of who was served
//	  serve                    takes its time
//	  SET served               the same list with this customer at its end
//
// Nothing but the lock keeps two customers from writing the list at once, and so
// from losing one of them.
//
// # How the order of arrival is known
//
// A customer has arrived when it stands in the queue in Redis. The parent lets one
// customer come at a time, and the next only when it has seen a newcomer at the
// end of the list in which the fair lock keeps its queue, or the customer is being
// served already. So each was in the queue before the next one asked; there is no
// need to compare clocks. The other lock, rlock, has no queue in Redis: there a
// customer has arrived when its process says that it is about to ask.
//
// The order of service is the list that they wrote, not what they report. A
// customer that was served before one that had arrived earlier is an inversion.
//
// # Who dies
//
// Once a quarter of the customers is through, the parent kills a process whose
// customers wait, while another process serves; once half is through, the process
// that serves. All customers of a dead process are gone, the others keep their
// order. Redis sees the first by the closed connection and goes on to the next
// who lives; after the second the counter stays shut until the lease ends.
//
// A process that stands still for longer than -lease counts as dead, too. Its
// customers enter anew, at the end, and are shown as overtaken: on a machine that
// is so busy, take a longer one.
package main
