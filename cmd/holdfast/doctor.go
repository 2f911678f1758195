package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cluster"
)

// finding is what doctor has found out about a server.
type finding struct {
	Server string `json:"server"`
	Hurts  bool   `json:"hurts"` // locks; otherwise it is only good to know
	Found  string `json:"found"`
	Why    string `json:"why"`
	Do     string `json:"do"`
}

// checkup is that of one server.
type checkup struct {
	rueidis.Client
	server   string
	mode     rueidis.ClientMode // of the client that knows all servers
	key      string             // a lock whose rights are checked; "": none
	fair     bool               // the rights of fair locks are needed
	permits  bool               // the rights of semaphores are needed
	read     bool               // the rights of read/write locks are needed
	findings []finding

	version    string // as INFO says; "": not known
	replica    bool   // as INFO says
	judged     bool   // the rights
	scriptless bool   // it refuses all scripts
}

func (c *checkup) hurts(found, why, do string) {
	c.findings = append(c.findings, finding{c.server, true, found, why, do})
}

func (c *checkup) note(found, why, do string) {
	c.findings = append(c.findings, finding{c.server, false, found, why, do})
}

func newDoctor(s *server) *cobra.Command {
	var asJSON, fairToo, permitsToo, readToo bool
	c := &cobra.Command{
		Use:   "doctor [flags] [KEY]",
		Short: "Find what in Redis hurts locks, and say what to do",
		Long: `Doctor looks at the version, settings, memory, replicas, clock and rights of the server, on a
Redis Cluster of every master, of a Sentinel set also at the Sentinels, and tries what locks
do. It changes no lock. With KEY, the name of a lock, it also looks whether the user may use
that key. A question that its user may not ask becomes a note, not a failure.

HURTS is what breaks a promise of the locks on a server that lives, or ends them soon; a note
is advice, such as what a server forgets when it dies, or what cannot be had there.

The exit status is 0 if nothing hurts locks, and 80 if something does.`,
		Example: "  holdfast doctor --fair jobs:nightly",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneKey(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, _ operators) error {
				nodes, err := masters(ctx, client)
				if err != nil {
					return failed(err)
				}
				var findings []finding
				for _, name := range slices.Sorted(maps.Keys(nodes)) {
					one := checkup{Client: nodes[name], server: name, mode: client.Mode(), key: append(args, "")[0], fair: fairToo, permits: permitsToo, read: readToo}
					one.run(ctx)
					findings = append(findings, one.findings...)
				}
				if client.Mode() == rueidis.ClientModeSentinel {
					more, err := s.checkSentinels(ctx)
					if err != nil {
						return err
					}
					findings = append(findings, more...)
				}
				if err := printFindings(c.OutOrStdout(), asJSON, findings); err != nil {
					return written(err)
				}
				if hurt := count(findings); hurt > 0 {
					return &failure{statusHurts, fmt.Errorf("%d of %d findings hurt locks", hurt, len(findings))}
				}
				return nil
			})
		},
	}
	outputFlag(c, &asJSON, "text", ", or json: an array in one line")
	c.Flags().BoolVar(&permitsToo, "permits", false, "the user also needs the rights of semaphores, as for run --permits and resize")
	c.Flags().BoolVar(&readToo, "read", false, "the user also needs the rights of read/write locks, as for run --read and run --write")
	c.Flags().BoolVar(&fairToo, "fair", false, "the user also needs the rights of fair locks, as for run --fair, ls, show and unlock")
	return c
}

// count is how many hurt locks.
func count(findings []finding) int {
	return len(slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return !f.Hurts }))
}

func printFindings(w io.Writer, asJSON bool, findings []finding) (err error) {
	if asJSON {
		return json.NewEncoder(w).Encode(append([]finding{}, findings...))
	}
	for _, f := range findings {
		grade := "note "
		if f.Hurts {
			grade = "HURTS"
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "%s  %s: %s\n       why: %s\n       do:  %s\n", grade, f.Server, f.Found, f.Why, f.Do)
		}
	}
	if count(findings) == 0 && err == nil {
		_, err = fmt.Fprintln(w, "nothing hurts locks")
	}
	return err
}

// run checks one server.
func (c *checkup) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, part := range []func(context.Context) error{c.checkInfo, c.checkConfig, c.checkClock, c.checkWrites, c.checkRights, c.checkTrials} {
		if err := part(ctx); err != nil {
			c.hurts("it does not answer: "+readable(err).Error(), "its locks cannot be taken, renewed or released", "check the server and the network")
			return
		}
	}
}

// noteRefusal returns the error of a server that did not answer. What the server refused to
// tell becomes a note.
func (c *checkup) noteRefusal(err error, asked, about string) error {
	if err == nil || failed(err).status == statusAway {
		return err
	}
	c.note(asked+" is refused: "+readable(err).Error(), "not checked: "+about, "allow +"+asked+" to the user of this check, or check that yourself")
	return nil
}

// masters returns a client for each master.
func masters(ctx context.Context, client rueidis.Client) (map[string]rueidis.Client, error) {
	nodes := client.Nodes()
	if client.Mode() != rueidis.ClientModeCluster {
		return nodes, nil
	}
	m := cluster.New(client)
	if err := m.Refresh(ctx); err != nil {
		return nil, err
	}
	nodes = client.Nodes()
	of := map[string]rueidis.Client{}
	for _, name := range m.Masters() {
		if nodes[name] == nil {
			return nil, fmt.Errorf("%w: %s", holdfast.ErrUnavailable, name)
		}
		of[name] = nodes[name]
	}
	return of, nil
}
