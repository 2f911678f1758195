package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/loop"
)

// lock is the state of a key, as ls and show print it.
type lock struct {
	Key         string `json:"key"`
	Kind        string `json:"kind"`              // "semaphore", "rwlock"; "fair" if it has a queue, otherwise "lock"
	Holder      string `json:"holder"`            // "": free
	Library     string `json:"library,omitempty"` // of the holder
	Label       string `json:"label,omitempty"`   // of the holder
	Entries     int    `json:"entries"`
	RemainingMS int64  `json:"remaining_ms"` // -1: its lease has no end
	Waiting     int    `json:"waiting"`

	Mode    string `json:"mode,omitempty"`    // of a read/write lock: read or write
	Readers int    `json:"readers,omitempty"` // of a read/write lock; Holder is one of them unless another writes

	Permits int               `json:"permits,omitempty"` // of a semaphore
	Taken   int               `json:"taken,omitempty"`   // of these
	holders []holdfast.Holder // of these, as show prints them
}

func lockOf(s holdfast.Status) lock {
	l := lock{
		Key: s.Key, Kind: "lock", Holder: s.Owner, Label: s.Label, Entries: s.Entries, RemainingMS: s.Remaining.Milliseconds(), Waiting: s.Waiting,
		Mode: s.Mode, Readers: s.Readers, Permits: s.Permits, Taken: len(s.Holders), holders: s.Holders,
	}
	if s.Remaining < 0 {
		l.RemainingMS = -1
	}
	switch {
	case s.Permits+len(s.Holders) > 0:
		l.Kind = "semaphore"
	case s.Mode != "":
		l.Kind = "rwlock"
	case s.Waiting > 0:
		l.Kind = "fair"
	}
	if s.Held {
		l.Library = libraryOf(s.Owner)
	}
	return l
}

// libraryOf tells ours from Redisson's owners: our numbers begin with a zero.
func libraryOf(owner string) string {
	if _, number, _ := strings.Cut(owner, ":"); strings.HasPrefix(number, "0") {
		return "holdfast"
	}
	return "redisson"
}

// owners are all that hold it, in the order of their names; of readers, one.
func (l lock) owners() []string {
	switch {
	case l.Holder == "":
		return nil
	case l.Kind != "semaphore":
		return []string{l.Holder}
	}
	var all []string
	for _, h := range l.holders {
		all = append(all, h.Owner)
	}
	return slices.Sorted(slices.Values(all))
}

// otherReaders is how many read in addition to Holder.
func (l lock) otherReaders() int {
	if l.Mode == "read" {
		return l.Readers - 1
	}
	return l.Readers
}

// holder is whom ls shows: of a semaphore and of readers, how many.
func (l lock) holder() string {
	switch {
	case l.Kind == "semaphore":
		return fmt.Sprintf("%d of %d permits", l.Taken, l.Permits)
	case l.Mode == "read":
		return fmt.Sprintf("read by %d", l.Readers)
	}
	return l.Holder
}

func (l lock) left() string {
	if l.RemainingMS < 0 {
		return "no end"
	}
	return (time.Duration(l.RemainingMS) * time.Millisecond).Round(100 * time.Millisecond).String()
}

const watchEvery = 2 * time.Second

func newList(s *server) *cobra.Command {
	var every time.Duration
	asJSON := false
	c := &cobra.Command{
		Use:   "ls [flags] [PATTERN]",
		Short: "List the locks that are held",
		Long: `Ls lists the locks, read/write locks and semaphores that are held, of all libraries, whose
names match PATTERN: * and ? and [a-z], as with Redis. It reads all names of the server in small
steps (SCAN), on a Redis Cluster those of every master.`,
		Example: "  holdfast ls 'jobs:*'\n  holdfast ls -o json | jq -r '.[].holder'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			watch := c.Flags().Changed("watch")
			if watch && every <= 0 {
				return fmt.Errorf("--watch: %v is not greater than zero", every)
			}
			if watch && every == watchEvery && len(args) > 0 {
				if _, err := time.ParseDuration(args[0]); err == nil {
					return fmt.Errorf("%q is the PATTERN: write --watch=%s", args[0], args[0])
				}
			}
			return s.with(c.Context(), func(ctx context.Context, _ rueidis.Client, o operators) error {
				worked := false
				for {
					locks, err := locksOf(ctx, append(args, "*")[0], engine.Of(o.fair), engine.Of(o.semaphores), engine.Of(o.readWrite))
					switch {
					case err == nil:
						worked = true
						if err := printLocks(c.OutOrStdout(), asJSON, locks); err != nil || !watch {
							return written(err)
						}
					case watch && (failed(err).status == statusAway || worked && rotating(err)): // perhaps it comes back
						complain(c.ErrOrStderr(), failed(err))
					default:
						return failed(err)
					}
					if !loop.Sleep(every, ctx.Done()) {
						return nil
					}
				}
			})
		},
	}
	outputFlag(c, &asJSON, "table", ", or json: an array in one line")
	c.Flags().DurationVar(&every, "watch", 0, "print again and again; --watch=`TIME` says how often")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery.String()
	return c
}

// rotating reports whether a server asks for a password that is new, or not yet valid.
func rotating(err error) bool {
	return strings.Contains(err.Error(), "WRONGPASS ") || strings.Contains(err.Error(), "NOAUTH ")
}

// locksOf returns the locks whose keys match pattern, sorted. The user may lack the rights for
// all kinds but the first: then the result has none of these.
func locksOf(ctx context.Context, pattern string, kinds ...*engine.Engine) ([]lock, error) {
	locks := []lock{}
	for i, e := range kinds {
		for status, err := range e.Matching(ctx, pattern) {
			switch {
			case err == nil:
				locks = append(locks, lockOf(status))
			case i == 0 || !lacksRight(err):
				return nil, err
			}
		}
	}
	slices.SortFunc(locks, func(a, b lock) int { return strings.Compare(a.Key, b.Key) })
	return locks, nil
}

func printLocks(w io.Writer, asJSON bool, locks []lock) error {
	if asJSON {
		return json.NewEncoder(w).Encode(locks)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tKIND\tHOLDER\tENTRIES\tLEFT\tWAITING\tLABEL")
	for _, l := range locks {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%d\t%s\n", printable(l.Key), l.Kind, printable(l.holder()), l.Entries, l.left(), l.Waiting, printable(l.Label))
	}
	return t.Flush()
}

// printable quotes what could command a terminal.
func printable(text string) string {
	if q := strconv.Quote(text); q != `"`+text+`"` {
		return q
	}
	return text
}
