package wire

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/holdfast-go/holdfast/scripts"
)

// script is the text that Redis runs, and the SHA-1 by which Redis knows it.
type script struct {
	text, sha string
	sharded   *script // with the shard channels of a Redis Cluster; nil: it has no channels
	each      *script // does with each of many locks what this one does with one; nil: there is none
	renews    bool    // whether it renews holds, perhaps of several keys; set by Renew
	shows     bool    // whether its reply has labels; set by showing
	bound     bool    // whether its text is for one boot of a server: a call never sends it; set by newVote
}

// sources are the texts of all scripts by their names; immutable.
var sources = scripts.Scripts()

func load(name string) script {
	text, known := sources[name]
	if !known {
		panic("wire: no script " + name)
	}
	s := scriptOf(text)
	if text, has := sources[name+"/sharded"]; has {
		s.sharded = new(scriptOf(text))
	}
	if _, has := sources[name+"_each"]; has {
		s.each = new(load(name + "_each"))
	}
	return s
}

// showing returns the script with the name, which shows labels.
func showing(name string) script {
	s := load(name)
	s.shows = true
	return s
}

func scriptOf(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}
