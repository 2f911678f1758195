package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/semaphore"
)

// healthy are settings that hurt no lock.
var healthy = []string{"--appendonly", "yes", "--appendfsync", "always"}

// finds runs doctor, and returns what it finds. A machine that stands still for seconds looks like a silent server: that
// counts if it is found three times in a row.
func finds(t *testing.T, args ...string) (found []finding) {
	t.Helper()
	silent := func(f finding) bool {
		return strings.Contains(f.Found, "nothing arrives") || strings.Contains(f.Found, "does not answer")
	}
	for n := range 3 {
		var out, errors strings.Builder
		status := execute(append([]string{"doctor", "-o", "json"}, args...), nil, &out, &errors)
		if status == statusAway && n < 2 {
			t.Log(errors.String())
			continue
		}
		if n > 0 && found != nil && status != 0 && status != statusHurts {
			break // it has no room for another client so soon
		}
		found = nil
		require.NoError(t, json.Unmarshal([]byte(out.String()), &found), errors.String())
		want := 0
		if count(found) > 0 {
			want = statusHurts
		}
		require.Equal(t, want, status, errors.String())
		if !slices.ContainsFunc(found, silent) {
			break
		}
	}
	return slices.DeleteFunc(found, func(f finding) bool { // what it says of each server before 7.0
		return !f.Hurts && strings.Contains(f.Found, "Redis 6.2") || strings.Contains(f.Found, "before 7.0")
	})
}

// requireFinds requires the findings to begin so, in this order. Those that hurt begin
// with "!".
func requireFinds(t *testing.T, found []finding, want ...string) {
	t.Helper()
	var got []string
	for _, f := range found {
		require.NotEmpty(t, f.Server)
		require.NotEmpty(t, f.Why)
		require.NotEmpty(t, f.Do)
		if f.Hurts {
			f.Found = "!" + f.Found
		}
		got = append(got, f.Found)
	}
	require.Len(t, got, len(want), "%v", got)
	for i := range want {
		require.Regexp(t, "^"+want[i], got[i])
	}
}

// awaitInfo waits until INFO has a line.
func awaitInfo(t *testing.T, s *redistest.Server, line string) {
	t.Helper()
	eventually(t, func() bool {
		return strings.Contains(redistest.Must(s.Do(t, "INFO").ToString())(t), line+"\r\n")
	})
}

func TestDoctorOfAServerThatHurtsNothing(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "doctor notes it")
	s := redistest.Start(t, healthy...)
	require.Equal(t, "nothing hurts locks\n", printed(t, urlOf(s), "doctor", "--fair", key))
	require.Empty(t, finds(t, "--redis", urlOf(s)))
	require.Zero(t, number(t, s, "DBSIZE"))
	s.Do(t, "CONFIG", "SET", "appendonly", "no") // as it is installed: what it forgets when it dies is advice
	out, _ := asks(t, 0, urlOf(s), "", "doctor", key)
	require.Contains(t, out, "note   "+s.Addr()+": appendonly is off\n")
	require.Contains(t, out, "\nnothing hurts locks\n")
	s.Kill()
	asks(t, statusAway, urlOf(s), "", "doctor")
}

// The texts are of Redis and of no script.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "doctor notes it")
	for name, c := range map[string]struct {
		args  []string                            // of the server
		do    func(*testing.T, *redistest.Server) // what has happened to it; nil: nothing
		proxy redistest.Hook                      // before it; nil: lets all pass
		finds []string
	}{
		"eviction":       {[]string{"--maxmemory-policy", "volatile-lru"}, nil, nil, []string{"!maxmemory-policy is volatile-lru"}},
		"no persistence": {[]string{"--appendonly", "no"}, nil, nil, []string{"appendonly is off"}},
		"everysec":       {[]string{"--appendfsync", "everysec"}, nil, nil, []string{"appendfsync is everysec"}},
		"no fsync":       {[]string{"--appendfsync", "no"}, nil, nil, []string{"appendfsync is no"}},
		"timeout":        {[]string{"--timeout", "60"}, nil, nil, []string{"timeout is 60"}},
		"no memory":      {[]string{"--maxmemory", "1"}, nil, nil, []string{"!maxmemory is used to [0-9]+ %", "!it refuses writes: OOM"}},
		"connections": {nil, func(t *testing.T, s *redistest.Server) { s.Do(t, "CONFIG", "SET", "maxclients", "2") }, nil,
			[]string{"!maxclients is reached to [0-9]+ %", "!a message does not go through: nothing arrives: "}},
		"a replica that is away": {[]string{"--min-replicas-to-write", "1"}, nil, nil, []string{"!it refuses writes: NOREPLICAS"}},
		"a full disk": {nil, func(t *testing.T, s *redistest.Server) {
			require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700)) // which a snapshot cannot replace
			s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			s.Do(t, "BGSAVE")
			awaitInfo(t, s, "rdb_last_bgsave_status:err")
		}, nil, []string{"!rdb_last_bgsave_status is err", "!it refuses writes: MISCONF"}},
		"no EVAL": {[]string{"--rename-command", "EVAL", ""}, nil, nil, []string{"!it refuses scripts: unknown command 'EVAL'$"}},
		"no WAIT": {[]string{"--rename-command", "WAIT", ""}, nil, nil, []string{"it does not know WAIT$"}},
		"no TIME": {[]string{"--rename-command", "TIME", ""}, nil, nil, []string{"time is refused", "!it does not know TIME$"}},
		"no lock": {nil, func(t *testing.T, s *redistest.Server) { s.Do(t, "SET", key, "no lock") }, nil,
			[]string{"!the key holds something other than a lock of this kind"}},
		"no message": {nil, nil, redistest.Always(func(cmd []string) bool {
			return cmd[0] == "SUBSCRIBE" && strings.HasSuffix(cmd[1], "doctor")
		}, redistest.Hold), []string{"!a message does not go through: nothing arrives"}},
		"no answer": {nil, nil, redistest.Always(func(cmd []string) bool { return cmd[0] == "TIME" }, redistest.Cut), []string{"!it does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, append(slices.Clone(healthy), c.args...)...)
			proxy := redistest.NewProxy(t, s.Addr())
			proxy.OnRequest(c.proxy)
			if c.do != nil {
				c.do(t, s)
			}
			keys := number(t, s, "DBSIZE")
			found := finds(t, "--redis", "redis://"+proxy.Addr(), "--fair", key)
			requireFinds(t, found, c.finds...)
			for _, f := range found {
				require.NotContains(t, f.Found, "local ")
				require.NotContains(t, f.Found, "return")
			}
			require.Equal(t, keys, number(t, s, "DBSIZE"))
		})
	}
}

// A lock of any kind may be held meanwhile. What else has the name is told.
func TestDoctorOfALockThatIsHeld(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "doctor notes it")
	s := redistest.Start(t, healthy...)
	semaphores := redistest.Must(semaphore.New(s.Client(t), 3))(t)
	t.Cleanup(func() { require.NoError(t, semaphores.Close()) })
	readWrite := newReadWrite(t, s)
	locked(t, newLocker(t, s), "mutex")
	locked(t, readers{readWrite.RLocker(), readWrite}, "read")
	locked(t, readWrite, "written")
	locked(t, semaphores, "permits")
	s.Do(t, "SET", "text", "no lock")

	const plain, rw, permits, none = "a lock of rlock or fair has this name", "a read/write lock has this name", "a semaphore has this name",
		"!the key holds something other than a lock of this kind"
	for flags, of := range map[string]map[string]string{
		"":                        {"mutex": "", "read": rw, "written": rw, "permits": permits, "text": none},
		"--fair":                  {"mutex": "", "read": "!" + rw, "written": "!" + rw, "permits": "!" + permits, "text": none},
		"--read":                  {"mutex": "!" + plain, "read": "", "written": "", "permits": "!" + permits, "text": none},
		"--permits":               {"mutex": "!" + plain, "read": "!" + rw, "written": "!" + rw, "permits": "", "text": none},
		"--fair --read --permits": {"mutex": "", "read": "", "written": "", "permits": "", "text": none},
	} {
		for name, want := range of {
			got := finds(t, append(strings.Fields(flags), "--redis", urlOf(s), name)...)
			if want == "" {
				require.Empty(t, got, "%s %s", flags, name)
			} else {
				requireFinds(t, got, want)
			}
		}
	}
}

// Where Redis does not tell rights, the trials find what it refuses.
func TestDoctorFindsThatScriptsMayNotAskTheTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--rename-command", "TIME", "")
	for _, of := range []checkup{{}, {fair: true}, {permits: true}, {read: true}} {
		of.Client, of.server = s.Client(t), s.Addr()
		require.NoError(t, of.checkTrials(t.Context()))
		matters := of.fair || of.permits || of.read
		require.True(t, slices.ContainsFunc(of.findings, func(f finding) bool {
			return strings.HasPrefix(f.Found, "TIME in a script is refused") && f.Hurts == matters
		}), "%v", of.findings)
	}
}

func TestDoctorFindsAnotherClock(t *testing.T) {
	t.Parallel()
	s := redistest.StartWithClock(t, healthy...)
	for _, ahead := range []time.Duration{time.Minute, -time.Minute} {
		s.SetClock(ahead, 1)
		found := finds(t, "--redis", urlOf(s))
		requireFinds(t, found, "!its clock differs")
		of := regexp.MustCompile(`by (\S+)$`).FindStringSubmatch(found[0].Found)
		require.InDelta(t, ahead.Seconds(), redistest.Must(time.ParseDuration(of[1]))(t).Seconds(), 20)
	}
	s.SetClock(0, 1)
	require.Empty(t, finds(t, "--redis", urlOf(s)))
}

func TestDoctorFindsReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, healthy...)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := redistest.Start(t, append(slices.Clone(healthy), "--replicaof", host, port, "--repl-diskless-sync-delay", "0")...)
	awaitInfo(t, replica, "master_link_status:up")
	requireFinds(t, finds(t, "--redis", urlOf(master)), "min-replicas-to-write is 0")
	requireFinds(t, finds(t, "--redis", urlOf(replica)), "!it is a replica of "+master.Addr(), "!it refuses writes: READONLY")
	master.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	awaitInfo(t, master, "min_slaves_good_slaves:1")
	require.Empty(t, finds(t, "--redis", urlOf(master)))
}

func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 1, append(slices.Clone(healthy), "--min-replicas-to-write", "1", "--cluster-require-full-coverage", "no")...)
	c.AwaitReplicas(t)
	masters := c.Masters(t)
	url := urlOf(masters[0])
	require.Empty(t, finds(t, "--redis", url, "--fair", key))
	for _, tag := range []string{"0", "10"} { // of both masters
		require.Empty(t, finds(t, "--redis", url, "jobs:{"+tag+"}:nightly"))
	}
	masters[1].Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	masters[1].Do(t, "CONFIG", "SET", "cluster-node-timeout", "20000")
	masters[1].Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "yes")
	found := finds(t, "--redis", url, "--fair", key)
	requireFinds(t, found, "!maxmemory-policy is allkeys-random", "cluster-require-full-coverage is yes", "cluster-node-timeout is 20000")
	for _, f := range found {
		require.Equal(t, masters[1].Addr(), f.Server)
	}
}

func TestDoctorOfALoneSentinel(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	master := redistest.StartTLS(t, ca, certificate(ca, "127.0.0.1"), healthy...)
	s := redistest.StartTLSSentinel(t, master, certificate(ca, "127.0.0.1"))
	found := finds(t, tlsArgs(t, master, fmt.Sprintf("rediss://127.0.0.1:%d?master_set=%s", s.Port(), redistest.MasterSet))...)
	requireFinds(t, found, "it has no replica", "down-after-milliseconds is 30000", "!it knows of 0 other Sentinels")
}

func TestDoctorOfOldServers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"6.0.16": {"!it is Redis 6.0.16"},
		"6.2.14": {"it is Redis 6.2.14"},
		"7.0.15": {},
	} {
		c := checkup{server: "server"}
		c.checkVersion(version)
		requireFinds(t, c.findings, want...)
	}
}

func TestDoctorOfSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, append(slices.Clone(healthy), "--min-replicas-to-write", "1")...)
	first := s.Sentinels()[0]
	url := fmt.Sprintf("%s?master_set=%s&addr=%s", urlOf(first), redistest.MasterSet, s.Sentinels()[1].Addr())
	eventually(t, func() bool { return len(finds(t, "--redis", url, "--fair", key)) == 0 }) // the Sentinels have met
	first.Do(t, "SENTINEL", "SET", redistest.MasterSet, "down-after-milliseconds", "30000")
	found := finds(t, "--redis", url, "--fair", key)
	requireFinds(t, found, "down-after-milliseconds is 30000")
	require.Equal(t, "Sentinel "+first.Addr(), found[0].Server)
	s.Sentinels()[1].Kill() // the URL's second
	requireFinds(t, finds(t, "--redis", url, "--fair", key), "down-after-milliseconds is 30000", "!it does not answer")
}

// docs/command.md shows what doctor prints.
func TestDoctorPrintsWhatItsPageShows(t *testing.T) {
	t.Parallel()
	redistest.NeedRedis7(t, "doctor notes it")
	s := redistest.Start(t, append(slices.Clone(healthy), "--maxmemory-policy", "volatile-lru", "--appendfsync", "everysec")...)
	out, _ := asks(t, statusHurts, urlOf(s), "", "doctor", "jobs:nightly")
	page := redistest.Must(os.ReadFile("../../docs/command.md"))(t)
	shown := strings.ReplaceAll(strings.ReplaceAll("\n"+out, "\n", "\n    "), s.Addr(), "127.0.0.1:6379")
	require.Contains(t, string(page), "    $ holdfast doctor jobs:nightly"+strings.TrimRight(shown, " ")+"\n")
}
