package wire

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
)

// Scan reads the names of what may be locks, on one server.
type Scan struct {
	Server string // its address; "" if there is only one
	// Page reads the names behind a cursor, which begins with 0. It keeps Redis from other calls
	// for less than a millisecond.
	Page func(ctx context.Context, cursor uint64) (Page, error)
}

// Page is some names, perhaps not for the first time.
type Page struct {
	Names []string
	Next  uint64 // the cursor of the next page; 0: there is none
}

// pageSize is how many names Redis looks at for a page, of whatever type.
const pageSize = "1000"

// Scans returns a Scan for each server that has keys, for the names that match a pattern as of
// SCAN. A Scan yields each name that is there throughout, unless its server restarts, or its
// slot moves.
func (o *onRedis) Scans(ctx context.Context, match string) ([]Scan, error) {
	r := o.redis
	if r.Cluster == nil {
		client := r.client
		if nodes := slices.Collect(maps.Values(client.Nodes())); len(nodes) == 1 {
			client = nodes[0] // it never changes to another server, where the cursor would mean nothing
		}
		return []Scan{r.scan("", client, match, o.keyType)}, nil
	}
	if err := r.Cluster.Refresh(ctx); err != nil {
		return nil, unasked(err)
	}
	var scans []Scan
	nodes := r.client.Nodes()
	for _, addr := range r.Cluster.Masters() {
		scans = append(scans, r.scan(addr, nodes[addr], match, o.keyType))
	}
	return scans, nil
}

var errNotKnown = Judge(errors.New("the client does not know this master yet"), Unavailable)

func (r *Redis) scan(server string, client rueidis.Client, match, of string) Scan {
	return Scan{server, func(ctx context.Context, cursor uint64) (Page, error) {
		if client == nil {
			return Page{}, errNotKnown
		}
		// rueidis does not repeat what is Arbitrary: a server that has restarted has other cursors.
		cmd := r.client.B().Arbitrary("SCAN", strconv.FormatUint(cursor, 10), "MATCH", match, "COUNT", pageSize, "TYPE", of)
		reply, err := client.Do(ctx, cmd.Build()).AsScanEntry()
		if err != nil {
			return Page{}, r.callError(ctx, 0, err)
		}
		return Page{slices.DeleteFunc(reply.Elements, func(name string) bool {
			return check.Key(name) != nil || r.BySlot() && !oneSlot(name)
		}), reply.Cursor}, nil
	}}
}

var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Literal returns the pattern that matches text and nothing else.
func Literal(text string) string { return literal.Replace(text) }

// InspectEach does what Inspect does for each of names, some hundred at most, and returns a
// result for each. It costs one round trip to each server, and more where a server does not accept
// some, as it does not know the script yet or a slot moves: it is asked again.
func (o *onRedis) InspectEach(ctx context.Context, names []string) ([]Result[holdfast.Status], error) {
	r, results := o.redis, make([]Result[holdfast.Status], len(names))
	use := func(i int, m rueidis.RedisMessage, err error) error {
		results[i].Value, results[i].Err = o.parse(m, err)
		if OutcomeOf(results[i].Err) == Refused {
			return nil
		}
		return results[i].Err
	}
	for open := all(len(names)); len(open) > 0; {
		cmds := make(rueidis.Commands, len(open))
		for at, i := range open {
			keys := o.keys(names[i])
			cmds[at] = r.eval("EVALSHA", o.inspect.sha, len(keys), keys)
		}
		var again []int
		for at, reply := range r.client.DoMulti(ctx, cmds...) {
			m, err := reply.ToMessage()
			if noScript(err) || changing(err) {
				again = append(again, open[at])
			} else if err := use(open[at], m, r.callError(ctx, rightHash, err)); err != nil {
				return nil, err
			}
		}
		if open = again; len(open) > 0 { // alone, and then the others, as the server knows the script
			keys := o.keys(names[open[0]])
			m, err := r.invoke(ctx, o.inspect, len(keys), keys...)
			if err := use(open[0], m, err); err != nil {
				return nil, err
			}
			open = open[1:]
		}
	}
	return results, nil
}
