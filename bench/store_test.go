package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that does not start is an error with its log though it is a rival's, is not
// waited for again, and leaves no file. The rest is measured.
func TestServerThatDoesNotStart(t *testing.T) {
	needServer(t)
	var where string
	starts := 0
	starters["none"] = func() (*process, error) {
		starts++
		return startProcess(func(dir, _ string) (*exec.Cmd, error) {
			where = dir
			return exec.Command("sh", "-c", "echo no room; exit 1"), nil
		}, func(string) error { return errors.New("not yet") })
	}
	defer delete(starters, "none")
	defer delete(running.failed, "none")
	w := workload{subjects: []subject{
		{name: "none", rival: true, run: func(s *server, _ time.Duration) (sample, error) {
			_, err := storeOf("none", s)
			return nil, err
		}},
		{name: "other", run: func(*server, time.Duration) (sample, error) { return sample{"x": 1}, nil }},
	}}
	m, err := w.measure(2, time.Millisecond, newProgress(io.Discard, nil, 1))
	require.Len(t, m.Notes, 2)
	require.Equal(t, []round{{"other": {"x": 1}}, {"other": {"x": 1}}}, m.Rounds)
	require.Equal(t, 2, starts)
	require.ErrorIs(t, err, errNotStarted)
	require.ErrorContains(t, err, "no room")
	require.NoDirExists(t, where)
}

// A rival's server that ends is noted where it fails, and is there again for the next.
func TestServerThatEnds(t *testing.T) {
	needServer(t)
	var all []*process
	starters["mortal"] = func() (*process, error) {
		p, err := startProcess(func(string, string) (*exec.Cmd, error) {
			return exec.Command("sleep", "60"), nil
		}, func(string) error { return nil })
		all = append(all, p)
		return p, err
	}
	defer delete(starters, "mortal")
	defer stopStores()
	w := workload{subjects: []subject{{name: "mortal", rival: true, run: func(s *server, _ time.Duration) (sample, error) {
		p, err := storeOf("mortal", s)
		if err == nil && len(all) == 1 {
			require.NoError(t, all[0].cmd.Process.Kill())
			<-all[0].done
			err = errors.New("gone")
		}
		if err != nil {
			return nil, err
		}
		require.Same(t, all[1], p)
		return sample{"x": 1}, nil
	}}}}
	m, err := w.measure(3, time.Millisecond, newProgress(io.Discard, nil, 1))
	require.NoError(t, err)
	require.Equal(t, []string{"mortal failed in round 1: gone"}, m.Notes)
	require.Equal(t, []round{{}, {"mortal": {"x": 1}}, {"mortal": {"x": 1}}}, m.Rounds)
	require.Len(t, all, 2)
}

// What fails ends neither the workload nor the run, which then fails at its end if it
// was one of ours; a Redis that has ended is there again for the next subject.
func TestFailuresEndNothing(t *testing.T) {
	needServer(t)
	fine := func(s *server, _ time.Duration) (sample, error) {
		_, err := s.do("PING")
		return sample{"x": 1}, err
	}
	kills := func(s *server, _ time.Duration) (sample, error) {
		require.NoError(t, s.cmd.Process.Kill())
		<-s.done
		return nil, io.ErrUnexpectedEOF
	}
	w := workload{name: "work", subjects: []subject{{name: "kills", run: kills}, {name: "fine", run: fine}}}
	m, err := w.measure(1, time.Millisecond, newProgress(io.Discard, nil, 1))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, []round{{"fine": {"x": 1}}}, m.Rounds)

	o := order{workloads: []workload{w, {name: "more", subjects: []subject{{name: "fine", run: fine}}}}, rounds: 1, out: t.TempDir()}
	r, err := o.begin()
	require.NoError(t, err)
	require.ErrorIs(t, o.carryOut(r, io.Discard, io.Discard), io.ErrUnexpectedEOF)
	text, err := os.ReadFile(filepath.Join(o.out, rawFile))
	require.NoError(t, err)
	require.Contains(t, string(text), `"more"`)
	require.Contains(t, string(text), "kills failed in round 1")
}

func TestRedisThatDoesNotStart(t *testing.T) {
	needServer(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = startOn(taken.Addr().(*net.TCPAddr).Port)
	require.ErrorContains(t, err, "Could not create server TCP listening socket")
}

// A server that restarts is at its address again, and knows nothing.
func TestRestart(t *testing.T) {
	needServer(t)
	s, err := startServer()
	require.NoError(t, err)
	defer func() { s.stop() }()
	_, err = s.do("SET", "key", "value")
	require.NoError(t, err)
	before, pid := s.addr, s.cmd.Process.Pid
	require.NoError(t, s.restart())
	require.Equal(t, before, s.addr)
	require.NotEqual(t, pid, s.cmd.Process.Pid)
	reply, err := s.do("EXISTS", "key")
	require.NoError(t, err)
	n, err := reply.AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}
