package main

import (
	"fmt"
	"time"
)

// hot is goroutines of one process that all want one key.
//
// In a queue that is first come, first served, one who has just unlocked waits
// for one section of each of the others: that, with sections as long as they
// were measured, is the ideal wait.
func hot(goroutines int, section time.Duration) workload {
	w := load{goroutines: goroutines, hot: true, section: section}
	work := workload{
		name:     fmt.Sprintf("hot/%d × %v", goroutines, section),
		subjects: []subject{w.hotSubject(holdfastName), w.hotSubject(noHandoverName), w.hotSubject(rueidisName)},
	}
	const speed, wait = "hand-overs/s", "p99 wait ÷ ideal"
	work.figures = []figure{{name: speed, value: of(holdfastName, speed)}}
	through, rival := ratio(holdfastName, noHandoverName, speed), ratio(holdfastName, rueidisName, speed)
	if section > 0 {
		work.figures = append(work.figures,
			figure{"÷ through Redis", target{}, through},
			figure{"÷ rueidislock", target{}, rival},
			figure{wait, atMost(2), of(holdfastName, wait)},
			figure{wait + ", through Redis", target{}, of(noHandoverName, wait)},
			figure{wait + ", rueidislock", target{}, of(rueidisName, wait)})
		return work
	}
	work.figures = append(work.figures,
		figure{"the better of ÷ 1 M/s and ÷ (100 × through Redis)", atLeast(1), func(r round) float64 {
			return max(r[holdfastName][speed]/1e6, through(r)/100)
		}},
		figure{"÷ through Redis", target{}, through},
		figure{"÷ rueidislock", atLeast(100), rival})
	return work
}

func (w load) hotSubject(name string) subject {
	return subject{name: name, rival: name == rueidisName, run: func(s *server, d time.Duration) (sample, error) {
		l, err := libraries[name](s.addr, usualLease)
		if err != nil {
			return nil, err
		}
		defer l.close()
		if _, err := w.run(l, d/5); err != nil {
			return nil, err
		}
		t, err := w.run(l, d)
		if err != nil {
			return nil, err
		}
		got := sample{"hand-overs/s": float64(t.cycles) / d.Seconds()}
		if w.section > 0 {
			p99 := quantile(t.waits, 0.99)
			ideal := time.Duration(w.goroutines-1) * t.meanSection()
			got["section ms"] = ms(t.meanSection())
			got["p99 wait ms"] = ms(p99)
			got["p99 wait ÷ ideal"] = p99.Seconds() / ideal.Seconds()
		}
		return got, nil
	}}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
