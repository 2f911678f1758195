package locktest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

func init() { registerChild("chaos", chaosWorker) }

// chaosWorker is exclusionWorker on several nodes.
// Args: the addresses of the nodes with commas between, the file of records, the
// name of the process, the seed, how the lock is broken.
func chaosWorker(_ Door, p *Parent) error {
	seed, err := strconv.ParseUint(p.Args[3], 10, 64)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	addrs := strings.Split(p.Args[0], ",")
	if slices.Contains(p.Args, "half") { // a majority of three are two of five
		random.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		addrs = addrs[:3]
	}
	var clients []rueidis.Client
	for _, addr := range addrs {
		client, err := p.Client(addr)
		for err != nil { // the node is away just now
			time.Sleep(10 * time.Millisecond)
			client, err = p.Client(addr)
		}
		defer client.Close()
		clients = append(clients, client)
	}
	lease, longest := chaosTerms(p.Args)
	o := MastersOptions{Lease: lease, Unguarded: slices.Contains(p.Args, "unguarded") || slices.Contains(p.Args, "half")} // the guard refuses another number of nodes
	if none := time.Duration(0); random.IntN(2) == 0 {
		o.Handover = &none
	}
	locker, err := ChaosDoor.New(clients, o)
	if err != nil {
		return err
	}
	return compete(p, locker, random, longest, p.Args[1], p.Args[2])
}

// chaosTerms are the lease, and the longest time for which it is held.
func chaosTerms(args []string) (lease, longest time.Duration) {
	lease, longest = chaosLease, 2*exclusionLease
	if slices.Contains(args, "unguarded") || slices.Contains(args, "clocks") { // a hold has to last until three nodes have failed
		return 5 * lease, 5 * longest
	}
	return lease, longest
}
