package main

import (
	"strconv"
	"strings"
)

const (
	// mostStolen is the share of the processors' time that the host of a virtual machine
	// may take for others during a measurement. With more of it, that is made again.
	mostStolen = 0.03
	// mostTries is how often it is made at most; the last one counts.
	mostTries = 3
)

// processors is how the time of all of them was spent since the machine was started,
// in ticks, as far as the system tells.
type processors struct{ stolen, all float64 }

// spentSoFar tells it; a test has others.
var spentSoFar = func() processors { return processorsOf(firstLine("/proc/stat")) }

// processorsOf reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal, and what is in the first two already. (proc(5))
func processorsOf(line string) (p processors) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return p
	}
	for _, field := range fields[1:9] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return processors{}
		}
		p.all, p.stolen = p.all+ticks, ticks
	}
	return p
}

// stolenSince is the share that was stolen; 0 where it is not known.
func (p processors) stolenSince(before processors) float64 {
	if p.all <= before.all {
		return 0
	}
	return (p.stolen - before.stolen) / (p.all - before.all)
}
