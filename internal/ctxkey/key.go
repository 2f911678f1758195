// Package ctxkey has the key under which a bound context has its lease.
package ctxkey

// Lease is the key of the nearest lease that a context is bound to, a *holdfast.Lease.
type Lease struct{}
