// Package redis finds the examples a Redis: an embedded one, or that of a URL.
package redis

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Server says where Redis is; it is sent to the processes as JSON.
type Server struct {
	URL      string // host:port or a URL, which may hold a password: never printed
	Embedded bool
}

// StartEmbedded runs a Redis server in this program, over TCP, so that other
// processes reach it, until stop is called.
func StartEmbedded() (s Server, stop func(), err error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true) // else no lease would ever end
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return Server{}, nil, fmt.Errorf("embedded server: %w", err)
	}
	return Server{URL: m.Addr(), Embedded: true}, m.Close, nil
}

// Connect returns a client that repeats nothing by itself, and is the caller's to
// close. Its errors do not show a password.
func (s Server) Connect() (rueidis.Client, error) {
	o := rueidis.ClientOption{InitAddress: []string{s.URL}}
	if strings.Contains(s.URL, "://") {
		var err error
		if o, err = rueidis.ParseURL(s.URL); err != nil {
			return nil, errors.New("not a redis:// or rediss:// URL") // err might show the password
		}
	} else if _, port, err := net.SplitHostPort(s.URL); err != nil || strings.Trim(port, "0123456789") != "" || strings.Contains(s.URL, "@") {
		return nil, errors.New("neither host:port nor a redis:// or rediss:// URL")
	}
	o.DisableCache = true
	o.DisableRetry = true // the examples repeat orders, not commands
	o.ForceSingleClient = s.Embedded
	if o.ConnWriteTimeout == 0 {
		o.ConnWriteTimeout = 5 * time.Second // also for the answers of a server that hangs
	}
	return rueidis.NewClient(o)
}
