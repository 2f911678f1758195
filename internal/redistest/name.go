package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Name is a host name, or the address of a load balancer, that stands for one server now and
// perhaps for another later. All methods may be called concurrently.
type Name struct{ addr atomic.Pointer[string] }

// NewName returns a name of s.
func NewName(s *Server) *Name {
	n := new(Name)
	n.Move(s)
	return n
}

// Move makes the name stand for s. Connections stay where they are.
func (n *Name) Move(s *Server) {
	addr := s.Addr()
	n.addr.Store(&addr)
}

// Dialled is a change of options by which a client dials the name.
func (n *Name) Dialled(o *rueidis.ClientOption) {
	o.ForceSingleClient = true
	o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", *n.addr.Load())
	}
}
