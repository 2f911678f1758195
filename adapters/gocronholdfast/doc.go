// Package gocronholdfast uses holdfast locks to make the gocron schedulers of many processes
// run each job once. [Locker] spreads the runs over the processes; [Elector] makes one of
// them run all jobs, until it ends or loses its lock.
//
// A lock that is held only while its job runs is too short: a job of 20 ms has ended, and is
// unlocked, before a process whose clock is 50 ms late asks for the same due time. That
// process would run it again. So [Locker] also blocks a job for a fixed time after each start.
package gocronholdfast
