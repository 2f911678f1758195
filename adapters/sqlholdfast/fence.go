// Package sqlholdfast uses fences to make a database refuse what a holder of a lock does after
// it has lost the lock: each row that a lock protects remembers the largest fence that it has
// seen.
//
// A row with a column for the fence refuses a statement of an earlier holder by itself, see
// [Exec]. [Fences] is a table for everything else that a lock protects: several statements,
// several tables, or rows that come and go.
//
// A fence protects from the past: mark the new fence before you read what you decide on. A
// holder that reads first, and marks with its write, may miss a late write of an earlier
// holder in between.
//
// The locker needs WithFencing. One Redis, or one quorum, gives the fences of a row: numbers of
// two of them cannot be compared.
package sqlholdfast

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

var (
	// ErrStale: there was a later holder of the lock; from Exec, perhaps there is no such row.
	// In the first case the caller has lost the lock and must not try again with this lease.
	ErrStale = errors.New("stale fence: a later holder of the lock was here")
	// ErrNoFence: there is no lease, as the context is bound to none, or its locker is without
	// WithFencing. The database was not asked.
	ErrNoFence = errors.New("no fence")
)

// Fence returns the fence of a lease as an argument of a statement. If there is none, the call
// that gets the argument fails with [ErrNoFence], before the database is asked. l may be nil,
// as [holdfast.LeaseFrom] returns it for a context without a lease.
func Fence(l *holdfast.Lease) driver.Valuer { return fence{l} }

type fence struct{ lease *holdfast.Lease }

func (f fence) Value() (driver.Value, error) {
	if f.lease == nil {
		return nil, fmt.Errorf("holdfast: %w: the context is bound to no lease", ErrNoFence)
	}
	if f.lease.Fence() == 0 {
		return nil, errs.Of("fence of", f.lease.Key(), fmt.Errorf("%w: its locker was made without WithFencing", ErrNoFence))
	}
	return f.lease.Fence(), nil
}

// Conn is a *sql.DB, a *sql.Conn or a *sql.Tx.
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Exec runs one statement that compares the fence, and fails with [ErrStale] if it changed no
// row: there is a larger fence, or no such row.
//
//	err := sqlholdfast.Exec(ctx, db, "UPDATE stock SET amount = $1, fence = $2 WHERE sku = $3 AND fence <= $2",
//		7, sqlholdfast.Fence(lease), "42")
//
// The column must not be NULL; 0 is smaller than all fences. Other errors are those of the
// driver.
//
// MySQL counts only rows whose values change, so a statement that is repeated under one lease
// would be stale: connect with clientFoundRows=true.
func Exec(ctx context.Context, db Conn, query string, args ...any) error {
	stale := fmt.Errorf("%w, or there is no such row", ErrStale)
	for _, a := range args {
		if f, ok := a.(fence); ok {
			if _, err := f.Value(); err != nil { // not in the words of a driver
				return err
			}
			stale = errs.Of("fence of", f.lease.Key(), stale)
		}
	}
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if rows, err := result.RowsAffected(); err != nil || rows > 0 {
		return err
	}
	return stale
}
