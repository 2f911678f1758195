// Flashsale sells scarce goods to a crowd, from many processes at once, and then
// checks its own books: the job that a distributed lock is for.
//
//	go run ./examples/flashsale                              2000 buyers, 3 items, 100 of each
//	go run ./examples/flashsale -guard=none                  the same without the lock: it oversells
//	go run ./examples/flashsale -kill                        one process dies while it holds the lock
//	go run ./examples/flashsale -orders orders.csv           orders of your own
//	go run ./examples/flashsale -redis localhost:6379        on a real Redis
//
// # What happens to an order
//
// The stock of an item and the order book of that item are plain fields of one
// Redis hash. Placing an order reads, decides and writes, as any program would:
//
//	Do(item)                     wait for the lock of the item
//	  HGET book                  placed before? then it is done
//	  Do(item)                   book the stock: the context re-enters the lock
//	    HGET stock               enough left?
//	    HSET stock, book         one command: both or neither
//
// Between HGET and HSET any other process could read the same stock; only the
// lock keeps it out. A process that dies there leaves stock and book as they
// were, and its lock frees itself within the lease. Placing an order a second
// time finds it in the book and changes nothing, so that whoever takes over the
// orders of a dead process need not know how far it came.
//
// # Who does what
//
// The parent starts this program again for each process and hands it orders,
// a few at a time, over its standard input; the process reports on its standard
// output. The parent remembers what each was given, and gives it to the others
// when the process dies. A process whose input ends, be it because the parent
// died, stops. What the final table says was sold comes from the order book in
// Redis, not from the reports.
package main
