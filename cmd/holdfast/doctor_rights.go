package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/scripts"
)

// askRights asks Redis which of the commands in ARGV[1] the user has no right to run, without
// running any: their numbers from 1, negative if Redis does not know the command, or 0 if it is
// too old to say.
const askRights = `if not redis.acl_check_cmd then return {0} end
local denied = {}
for i, command in ipairs(cjson.decode(ARGV[1])) do
  local known, may = pcall(redis.acl_check_cmd, unpack(command))
  if not known or not may then denied[#denied + 1] = known and i or -i end
end
return denied`

// need is what some kind of use needs.
type need struct {
	of     string
	always bool // otherwise only if somebody uses it so
	on     []access
}

// access is commands on a key or a channel, or on nothing.
type access struct {
	word     string // for ACL SETUSER, without which none of the commands may use name; "": there is no name
	name     string
	commands []string
}

// ofChannel reports whether name is that of a channel.
func (a access) ofChannel() bool { return strings.HasPrefix(a.word, "&") }

// probe is a command that is denied if word is missing. For a key, it is one that the user may call: a script.
func (a access) probe() []string {
	if a.ofChannel() {
		return full("publish", a.name)
	}
	return []string{"eval", "return 1", "1", a.name}
}

// arguments are those of each command that locks use, with * for its key or channel.
// REDIS 7.0 PANICS if acl_check_cmd gets fewer arguments than the command has.
var arguments = map[string]string{
	"asking": "", "cluster|shards": "", "cluster|slots": "", "eval": "script 0", "evalsha": "sha 0", "ping": "",
	"pubsub|numsub": "channel", "pubsub|shardnumsub": "channel", "role": "", "scan": "0", "sunsubscribe": "channel",
	"time": "", "unsubscribe": "channel", "wait": "0 1",
	"publish": "* m", "spublish": "* m", "subscribe": "*", "ssubscribe": "*",
	"del": "*", "exists": "*", "get": "*", "hdel": "* f", "hexists": "* f", "hget": "* f", "hgetall": "*", "hmget": "* f", "hrandfield": "*", "hset": "* f v",
	"pexpire": "* 1", "pttl": "*", "set": "* v",
	"lindex": "* 0", "llen": "*", "lpop": "*", "lpos": "* v", "lrange": "* 0 0", "lrem": "* 0 v", "lset": "* 0 v",
	"ltrim": "* 0 0", "rpush": "* v",
	"zadd": "* 1 m", "zcard": "*", "zcount": "* 1 1", "zrange": "* 0 0", "zrangebyscore": "* 0 0", "zrem": "* m", "zremrangebyrank": "* 0 0", "zscore": "* m",
}

// full returns a command with all its arguments.
func full(command, name string) []string {
	words := strings.Split(command, "|")
	for _, word := range strings.Fields(arguments[command]) {
		if word == "*" {
			word = name
		}
		words = append(words, word)
	}
	return words
}

// checkRights checks the rights of docs/acl.md.
func (c *checkup) checkRights(ctx context.Context) error {
	needs := c.needs()
	var all [][]string
	for _, n := range needs {
		for _, a := range n.on {
			for _, command := range a.commands {
				all = append(all, full(command, a.name))
			}
			if a.word != "" {
				all = append(all, a.probe())
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	denied, err := c.Do(ctx, c.B().Eval().Script(askRights).Numkeys(0).Arg(string(text)).Build()).AsIntSlice()
	switch {
	case err != nil && failed(err).status == statusAway:
		return err
	case err != nil && lacksRight(err):
		c.hurts("the user lacks +eval: "+readable(err).Error(), "all locks are scripts: Redis refuses those that it has not loaded, as after each restart", giveRights)
	case err != nil:
		c.scriptless = true
		c.hurts("it refuses scripts: "+readable(err).Error(), "all locks are scripts: none can be had here", "have the server allow EVAL and EVALSHA under these names")
	case slices.Contains(denied, 0):
		c.note("Redis before 7.0 does not tell rights", "not checked: the rights of the user", "compare them with docs/acl.md")
	case len(denied) > 0 && c.key == "":
		c.note("the user may not do everything", "not checked: whether its rights suffice", "name a lock: holdfast doctor KEY")
	default:
		c.judgeRights(needs, denied)
	}
	return nil
}

const giveRights = "give the rights by ACL SETUSER; docs/acl.md has them all"

// judgeRights reports which rights are missing, by the numbers of the denied commands.
func (c *checkup) judgeRights(needs []need, denied []int64) {
	c.judged = true
	number, told := int64(0), map[string]bool{}
	for _, n := range needs {
		var words, unknown []string
		for _, a := range n.on {
			var missing []string
			for _, command := range a.commands {
				switch number++; {
				case slices.Contains(denied, number):
					missing = append(missing, "+"+command)
				case slices.Contains(denied, -number):
					unknown = append(unknown, strings.ToUpper(command))
				}
			}
			if a.word != "" {
				if number++; len(missing) == len(a.commands) && slices.Contains(denied, number) {
					lacks := a.word // which of the commands are missing shows when it is given
					if a.ofChannel() {
						lacks += " or " + strings.Join(missing, " ") // nothing tells
					}
					missing = []string{lacks}
				}
			}
			words = append(words, missing...)
		}
		known := func(word string) bool {
			before := told[word]
			told[word] = true
			return before
		}
		words, unknown = slices.DeleteFunc(words, known), slices.DeleteFunc(unknown, known)
		report := c.note
		if n.always {
			report = c.hurts
		}
		if len(unknown) > 0 {
			report("it does not know "+strings.Join(unknown, " "), n.of+" cannot be had here", "have the server know them, under these names")
		}
		if len(words) > 0 {
			report("the user lacks "+strings.Join(words, " "), n.of+": Redis refuses them, or they wait too long", giveRights)
		}
	}
}

// needs returns the rights that the locks need here.
func (c *checkup) needs() []need {
	key := cmp.Or(c.key, "holdfast-doctor")
	_, of, _ := strings.Cut(scripts.Channel(key), ":")
	helper := func(prefix, more string, commands ...string) access {
		return access{"~" + prefix + ":*", prefix + ":" + of + more, commands}
	}
	on := func(channel string, more ...access) []access {
		prefix, _, _ := strings.Cut(channel, ":")
		all := append([]access{{"&" + prefix + ":*", channel, []string{"publish", "subscribe"}}}, more...)
		if c.mode == rueidis.ClientModeCluster {
			all = append(all, access{"&" + prefix + ":*", channel, []string{"spublish", "ssubscribe"}},
				access{"~" + prefix + ":*", channel, []string{"exists", "pttl"}})
		}
		return all
	}
	ofMode := map[rueidis.ClientMode][]string{
		rueidis.ClientModeCluster:  {"asking", "cluster|shards", "cluster|slots", "pubsub|shardnumsub", "sunsubscribe"},
		rueidis.ClientModeSentinel: {"role"},
	}[c.mode]
	plain := need{"rlock and run", true, append([]access{
		{"", "", []string{"ping", "eval", "evalsha", "pubsub|numsub", "unsubscribe"}},
		{"~" + key, key, []string{"del", "exists", "hdel", "hexists", "hget", "hrandfield", "hset", "pexpire", "pttl"}},
	}, on(scripts.Channel(key), helper(names.TombstonePrefix, ":owner", "exists", "set", "del"), access{"", "", ofMode})...)}
	fence := need{"locks with a fence, as of run --fence-env", false, []access{
		{"", "", []string{"time"}},
		helper(names.CounterPrefix, "", "get", "exists", "pexpire"),
	}}
	queue := need{"fair locks, run --fair, ls, show and unlock", c.fair, []access{
		{"", "", []string{"time"}},
		helper(names.QueuePrefix, "", "lindex", "llen", "lpop", "lpos", "lrange", "lrem", "lset", "ltrim", "rpush"),
		helper(names.ScoresPrefix, "", "zadd", "zcard", "zcount", "zrem", "zremrangebyrank", "zscore"),
		helper(names.HeartbeatsPrefix, "", "exists", "hset", "pexpire"),
	}}
	permits := need{"semaphores, run --permits and resize", true, append([]access{
		{"", "", []string{"time"}},
		{"~" + key, key, []string{"zadd", "zcount", "zrange", "zrangebyscore", "zrem", "zscore"}},
	}, on(scripts.SemaphoreChannel(key),
		helper(names.PermitsPrefix, "", "del", "exists", "hdel", "hexists", "hget", "hmget", "hrandfield", "hset", "pexpire"))...)}
	readWrite := need{"read/write locks, run --read and run --write", true, append([]access{
		{"", "", []string{"time"}},
		{"~" + key, key, []string{"del", "exists", "hdel", "hexists", "hget", "hgetall", "hset", "pexpire", "pttl"}},
		{"~" + of + ":*", of + ":owner" + names.ReadHolds + ":1", []string{"del", "exists", "get", "pexpire", "pttl", "set"}},
	}, on(scripts.RWLockChannel(key), helper(names.WishesPrefix, "", "del", "hdel", "hgetall", "hset", "pexpire"))...)}
	needs := []need{plain, queue}
	if c.permits {
		needs = append(needs, permits)
	}
	if c.read {
		needs = append(needs, readWrite)
	}
	needs = append(needs, fence, need{"ls", false, []access{{"", "", []string{"scan"}}}}, need{"WithReplicas", false, []access{{"", "", []string{"wait"}}}})
	turn := map[bool]int{true: -1} // a right that several need is told of one that hurts
	slices.SortStableFunc(needs, func(a, b need) int { return turn[a.always] - turn[b.always] })
	return needs
}
