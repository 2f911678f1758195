package sqlholdfast

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Dialect is a kind of database.
type Dialect int

const (
	PostgreSQL Dialect = iota + 1
	MySQL              // from 5.7 on, and MariaDB
	SQLite             // from 3.35 on
)

// statements of a dialect; %s is the table.
type statements struct{ schema, mark, read string }

var dialects = map[Dialect]statements{
	PostgreSQL: {
		schema: "CREATE TABLE IF NOT EXISTS %s (resource text PRIMARY KEY, fence bigint NOT NULL)",
		mark: "INSERT INTO %s AS seen (resource, fence) VALUES ($1, $2)" +
			" ON CONFLICT (resource) DO UPDATE SET fence = greatest(seen.fence, excluded.fence) RETURNING fence",
	},
	MySQL: {
		schema: "CREATE TABLE IF NOT EXISTS %s (resource varbinary(1024) PRIMARY KEY, fence bigint NOT NULL)",
		mark:   "INSERT INTO %s (resource, fence) VALUES (?, ?) ON DUPLICATE KEY UPDATE fence = greatest(fence, VALUES(fence))",
		read:   "SELECT fence FROM %s WHERE resource = ? FOR UPDATE", // not from the transaction's snapshot
	},
	SQLite: {
		schema: "CREATE TABLE IF NOT EXISTS %s (resource text PRIMARY KEY, fence integer NOT NULL)",
		mark: "INSERT INTO %s AS seen (resource, fence) VALUES (?, ?)" +
			" ON CONFLICT (resource) DO UPDATE SET fence = max(seen.fence, excluded.fence) RETURNING fence",
	},
}

var tableName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$`)

// Fences is a table with the largest fence seen for each resource. The resource of a lock is
// its key. Safe for concurrent use.
type Fences struct{ sql statements }

// NewFences names the table, which may have a schema: "app.fences". It does no I/O, and fails with
// [holdfast.ErrInvalidArgument] on another dialect, and on a name or schema that is not of letters,
// digits and _, or begins with a digit. A reserved word passes, but needs quotes that nobody sets.
func NewFences(d Dialect, table string) (*Fences, error) {
	s, ok := dialects[d]
	switch {
	case !ok:
		return nil, errs.Invalid("sqlholdfast: NewFences: no dialect %d", d)
	case !tableName.MatchString(table):
		return nil, errs.Invalid("sqlholdfast: NewFences: %q is not the name of a table", table)
	}
	for _, statement := range []*string{&s.schema, &s.mark, &s.read} {
		if *statement != "" {
			*statement = fmt.Sprintf(*statement, table)
		}
	}
	return &Fences{s}, nil
}

// Schema returns the statement that creates the table if it does not exist. Run it with your
// other migrations.
//
// A row stays for each key, without the prefix of [holdfast.WithPrefix]: lockers with different
// prefixes need a table each. It may be deleted when no process that had the key before the row's
// fence can still run.
func (f *Fences) Schema() string { return f.sql.schema }

// Check marks the fence of a lease, and fails with [ErrStale] if a larger one has been seen:
// then roll the transaction back. Make it the first statement of the transaction. What follows
// in it happens before all that a later holder does after its own Check, or not at all.
//
// Check waits for the transaction of an earlier holder, up to the end of ctx: make sure
// that the database ends those of processes that stand still, as PostgreSQL does with
// idle_in_transaction_session_timeout.
//
// It fails with [ErrNoFence] if l is nil or has no fence. Other errors are those of the
// driver, including serialization failures, after which the transaction may be tried again.
// It costs one round trip, with MySQL two.
func (f *Fences) Check(ctx context.Context, tx *sql.Tx, l *holdfast.Lease) error {
	mine, err := fence{l}.Value()
	if err != nil {
		return err
	}
	var largest int64
	if f.sql.read == "" {
		err = tx.QueryRowContext(ctx, f.sql.mark, l.Key(), mine).Scan(&largest)
	} else if _, err = tx.ExecContext(ctx, f.sql.mark, l.Key(), mine); err == nil {
		err = tx.QueryRowContext(ctx, f.sql.read, l.Key()).Scan(&largest)
	}
	if err != nil {
		return err
	}
	if largest > mine.(int64) {
		return errs.Of("fence of", l.Key(), ErrStale)
	}
	return nil
}
