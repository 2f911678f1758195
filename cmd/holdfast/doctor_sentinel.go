package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
)

// checkSentinels checks what each Sentinel of the URL says.
func (s *server) checkSentinels(ctx context.Context) (all []finding, err error) {
	o, err := s.options(holdfast.DefaultLease)
	if err != nil {
		return nil, err
	}
	for _, address := range o.InitAddress {
		one := o
		one.InitAddress, one.ForceSingleClient, one.Sentinel, one.SelectDB = []string{address}, true, rueidis.SentinelOption{}, 0
		one.Username, one.Password, one.TLSConfig = o.Sentinel.Username, o.Sentinel.Password, o.Sentinel.TLSConfig
		one.AuthCredentialsFn = nil
		c := checkup{server: "Sentinel " + address}
		if c.Client, err = rueidis.NewClient(one); err == nil {
			err = c.checkSentinel(ctx, o.Sentinel.MasterSet)
			c.Close()
		}
		if err != nil {
			c.hurts("it does not answer: "+failed(err).Error(), "fewer Sentinels are left to begin a failover", "see to it, or take it out of the URL")
		}
		all = append(all, c.findings...)
	}
	return all, nil
}

func (c *checkup) checkSentinel(ctx context.Context, set string) error {
	about, err := c.Do(ctx, c.B().Arbitrary("SENTINEL", "MASTER", set).Build()).AsStrMap()
	if err != nil {
		return c.noteRefusal(err, "sentinel|master", "the settings of Sentinels")
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(about[name])
		return n
	}
	c.checkFailover("down-after-milliseconds", number("down-after-milliseconds"))
	if others := number("num-other-sentinels"); others < 2 {
		c.hurts(fmt.Sprintf("it knows of %d other Sentinels, not of 2", others), "without one of them, no failover begins: locks stand still", "run three, on machines of their own")
	}
	return nil
}
