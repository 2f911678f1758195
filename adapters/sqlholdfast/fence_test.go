package sqlholdfast_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/sqlholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

const patience = time.Minute

func testExec(t *testing.T, s *suite) {
	const sku = "exec"
	late, present := s.holders(t, sku)
	defer s.leave(t, late, present)
	set := func(l *holdfast.Lease, amount int) error {
		return sqlholdfast.Exec(t.Context(), s, s.query("UPDATE stock SET amount = ?, fence = ? WHERE sku = ? AND fence <= ?"),
			amount, sqlholdfast.Fence(l), sku, sqlholdfast.Fence(l))
	}
	err := set(late, 1)
	require.ErrorIs(t, err, sqlholdfast.ErrStale)
	require.ErrorContains(t, err, `"exec"`)
	require.ErrorContains(t, err, "no such row")
	s.stock(t, sku)
	for _, amount := range []int{1, 2, 2} {
		require.NoError(t, set(late, amount), "nobody else was there yet")
	}
	require.NoError(t, set(present, 3))
	require.ErrorIs(t, set(late, 4), sqlholdfast.ErrStale)
	require.NoError(t, set(present, 5))
	require.Equal(t, 5, s.amount(t, s, sku))
}

// A holder that marks its fence before it reads is safe from a late write in between.
func testExecInTx(t *testing.T, s *suite) {
	const sku = "mark"
	s.stock(t, sku)
	late, present := s.holders(t, sku)
	defer s.leave(t, late, present)
	mark := func(db sqlholdfast.Conn, l *holdfast.Lease) error {
		return sqlholdfast.Exec(t.Context(), db, s.query("UPDATE stock SET fence = ? WHERE sku = ? AND fence <= ?"),
			sqlholdfast.Fence(l), sku, sqlholdfast.Fence(l))
	}
	tx := s.begin(t)
	require.NoError(t, mark(tx, present))
	require.Zero(t, s.amount(t, tx, sku))
	require.NoError(t, tx.Commit())
	require.ErrorIs(t, mark(s, late), sqlholdfast.ErrStale)
}

func testCheck(t *testing.T, s *suite) {
	const sku = "check"
	s.stock(t, sku)
	late, present := s.holders(t, sku)
	defer s.leave(t, late, present)
	add := func(l *holdfast.Lease, checks int) error {
		tx := s.begin(t)
		defer tx.Rollback()
		for range checks {
			if err := s.fences.Check(t.Context(), tx, l); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(t.Context(), s.query("UPDATE stock SET amount = amount + 1 WHERE sku = ?"), sku)
		require.NoError(t, err)
		return tx.Commit()
	}
	require.NoError(t, add(late, 1), "nobody else was there yet")
	require.NoError(t, add(late, 2))
	require.NoError(t, add(present, 1))
	err := add(late, 1)
	require.ErrorIs(t, err, sqlholdfast.ErrStale)
	require.ErrorContains(t, err, `"check"`)
	require.NoError(t, add(present, 1))
	require.Equal(t, 4, s.amount(t, s, sku))
}

// The transaction of an earlier holder has ended when that of a later one goes on.
func testCheckInOrder(t *testing.T, s *suite) {
	const sku = "order"
	s.stock(t, sku)
	late, present := s.holders(t, sku)
	defer s.leave(t, late, present)
	earlier := s.begin(t)
	defer earlier.Rollback()
	require.NoError(t, s.fences.Check(t.Context(), earlier, late))
	_, err := earlier.ExecContext(t.Context(), s.query("UPDATE stock SET amount = 7 WHERE sku = ?"), sku)
	require.NoError(t, err)

	began, checked := make(chan struct{}), make(chan error, 1)
	later := redistest.Must(s.BeginTx(context.Background(), nil))(t)
	defer later.Rollback()
	go func() {
		close(began)
		checked <- s.fences.Check(context.Background(), later, present)
	}()
	<-began
	if s.dialect == sqlholdfast.PostgreSQL {
		require.Eventually(t, func() (waits bool) {
			const locked = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
			return s.QueryRowContext(t.Context(), locked).Scan(&waits) == nil && waits
		}, patience, time.Millisecond)
	}
	require.Empty(t, checked)
	require.NoError(t, earlier.Commit())
	require.NoError(t, <-checked)
	require.Equal(t, 7, s.amount(t, later, sku))
	require.NoError(t, later.Commit())
}

// A transaction that has read before sees a later holder nevertheless.
func testCheckAfterRead(t *testing.T, s *suite) {
	if s.dialect == sqlholdfast.SQLite {
		t.Skip("SQLite refuses to write what is based on an old read")
	}
	const sku = "read"
	s.stock(t, sku)
	late, present := s.holders(t, sku)
	defer s.leave(t, late, present)
	tx := s.begin(t)
	defer tx.Rollback()
	require.NoError(t, s.fences.Check(t.Context(), tx, late))
	require.NoError(t, tx.Commit())
	tx = s.begin(t)
	defer tx.Rollback()
	require.Zero(t, s.amount(t, tx, sku))
	require.NoError(t, s.count(present, sku))
	require.ErrorIs(t, s.fences.Check(t.Context(), tx, late), sqlholdfast.ErrStale)
}

// What would not be protected is not done.
func testNoFence(t *testing.T, s *suite) {
	const sku = "none"
	s.stock(t, sku)
	plain := redistest.Must(rlock.New(s.redis.Client(t)))(t)
	defer plain.Close()
	unfenced := redistest.Must(plain.Lock(t.Context(), sku))(t)
	for _, l := range []*holdfast.Lease{nil, unfenced} {
		query := s.query("UPDATE stock SET amount = 1 WHERE sku = ? AND fence <= ?")
		require.ErrorIs(t, sqlholdfast.Exec(t.Context(), s, query, sku, sqlholdfast.Fence(l)), sqlholdfast.ErrNoFence)
		_, err := s.ExecContext(t.Context(), query, sku, sqlholdfast.Fence(l))
		require.ErrorIs(t, err, sqlholdfast.ErrNoFence)
		tx := s.begin(t)
		require.ErrorIs(t, s.fences.Check(t.Context(), tx, l), sqlholdfast.ErrNoFence)
		require.NoError(t, tx.Rollback())
	}
	require.Zero(t, s.amount(t, s, sku))
}

// Other errors are not taken for stale fences.
func testErrors(t *testing.T, s *suite) {
	late, present := s.holders(t, "errors")
	defer s.leave(t, late, present)
	err := sqlholdfast.Exec(t.Context(), s, "UPDATE nothing SET amount = 1")
	require.Error(t, err)
	require.NotErrorIs(t, err, sqlholdfast.ErrStale)

	missing := redistest.Must(sqlholdfast.NewFences(s.dialect, "nothing"))(t)
	tx := s.begin(t)
	err = missing.Check(t.Context(), tx, present)
	require.Error(t, err)
	require.NotErrorIs(t, err, sqlholdfast.ErrStale)
	require.NoError(t, tx.Rollback())

	tx = s.begin(t)
	require.NoError(t, tx.Rollback())
	require.ErrorIs(t, s.fences.Check(t.Context(), tx, present), sql.ErrTxDone)
}

// Again and again, two holders that both believe in their lease count at the same time.
func testCampaign(t *testing.T, s *suite) {
	const sku, rounds = "campaign", 100
	s.stock(t, sku)
	counted := 0
	for range rounds {
		late, present := s.holders(t, sku)
		results := make(chan error, 2)
		for _, l := range []*holdfast.Lease{late, present} {
			go func() { results <- s.count(l, sku) }()
		}
		for range cap(results) {
			if err := <-results; err == nil {
				counted++
			} else {
				require.ErrorIs(t, err, sqlholdfast.ErrStale)
			}
		}
		require.Equal(t, counted, s.amount(t, s, sku), "two holders: a count is lost")
		s.leave(t, late, present)
	}
	t.Logf("%d of %d late holders came in time", counted-rounds, rounds)
}

// count adds one, by a read and a write.
func (s *suite) count(l *holdfast.Lease, sku string) error {
	ctx := context.Background()
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.fences.Check(ctx, tx, l); err != nil {
		return err
	}
	amount := 0
	if err := tx.QueryRowContext(ctx, s.query("SELECT amount FROM stock WHERE sku = ?"), sku).Scan(&amount); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.query("UPDATE stock SET amount = ? WHERE sku = ?"), amount+1, sku); err != nil {
		return err
	}
	return tx.Commit()
}

func TestNewFencesRefuses(t *testing.T) {
	for table, dialect := range map[string]sqlholdfast.Dialect{
		"fences": 0, "other": 4, "": sqlholdfast.SQLite, "a b": sqlholdfast.SQLite, "a.b.c": sqlholdfast.SQLite, "1a": sqlholdfast.SQLite,
		"a;": sqlholdfast.MySQL, "a\n": sqlholdfast.PostgreSQL,
	} {
		_, err := sqlholdfast.NewFences(dialect, table)
		require.ErrorContains(t, err, "sqlholdfast: NewFences: ", table)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	f := redistest.Must(sqlholdfast.NewFences(sqlholdfast.PostgreSQL, "app.fences"))(t)
	require.Contains(t, f.Schema(), " app.fences ")
}
