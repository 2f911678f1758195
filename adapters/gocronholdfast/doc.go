// Package gocronholdfast uses holdfast locks to make the gocron schedulers of many processes
// run each job once. [Locker] spreads the runs over the processes; [Elector] makes one of
// them run all jobs, until it ends or loses its lock.
//
// A lock that is held only while its job runs is too short, as docs/troubleshooting.md says under
// "My job ran twice". So [Locker] also blocks a job for a fixed time after each start.
package gocronholdfast
