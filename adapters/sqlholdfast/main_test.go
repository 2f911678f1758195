package sqlholdfast_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/sqlholdfast"
	"github.com/holdfast-go/holdfast/internal/testing/pgtest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

func TestSQLite(t *testing.T) {
	address := "file:" + filepath.Join(t.TempDir(), "shop.db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)"
	all(t, sqlholdfast.SQLite, "sqlite", address)
}

func TestPostgreSQL(t *testing.T) { all(t, sqlholdfast.PostgreSQL, "pgx", pgtest.Start(t)) }

func TestMySQL(t *testing.T) {
	address := os.Getenv("MYSQL") // user:password@tcp(127.0.0.1:3306)/empty?clientFoundRows=true
	if address == "" {
		t.Skip("the environment variable MYSQL names no empty database")
	}
	all(t, sqlholdfast.MySQL, "mysql", address)
}

// suite is what the tests of one database share. They have keys of their own.
type suite struct {
	*sql.DB
	dialect sqlholdfast.Dialect
	fences  *sqlholdfast.Fences
	redis   *redistest.Server
	first   *rlock.Locker // of two processes
	second  *rlock.Locker
}

// all runs all tests on one database.
func all(t *testing.T, dialect sqlholdfast.Dialect, driver, address string) {
	s := &suite{dialect: dialect, redis: redistest.Start(t)}
	s.DB = redistest.Must(sql.Open(driver, address))(t)
	defer func() { require.NoError(t, s.DB.Close()) }()
	s.first, s.second = s.locker(t), s.locker(t)
	s.fences = redistest.Must(sqlholdfast.NewFences(dialect, "fences"))(t)
	for range 2 { // the second one does no harm
		s.exec(t, s.fences.Schema())
	}
	s.exec(t, "CREATE TABLE stock (sku varchar(20) PRIMARY KEY, amount bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)")
	for name, test := range map[string]func(*testing.T, *suite){
		"Exec":           testExec,
		"ExecInTx":       testExecInTx,
		"Check":          testCheck,
		"CheckInOrder":   testCheckInOrder,
		"CheckAfterRead": testCheckAfterRead,
		"NoFence":        testNoFence,
		"Errors":         testErrors,
		"Campaign":       testCampaign,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func (s *suite) locker(t *testing.T) *rlock.Locker {
	l := redistest.Must(rlock.New(s.redis.Client(t), holdfast.WithFencing()))(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// query is q, with the placeholders of the database.
func (s *suite) query(q string) string {
	if s.dialect != sqlholdfast.PostgreSQL {
		return q
	}
	for n := 1; strings.Contains(q, "?"); n++ {
		q = strings.Replace(q, "?", "$"+strconv.Itoa(n), 1)
	}
	return q
}

func (s *suite) exec(t *testing.T, q string, args ...any) {
	t.Helper()
	_, err := s.ExecContext(t.Context(), s.query(q), args...)
	require.NoError(t, err)
}

func (s *suite) begin(t *testing.T) *sql.Tx {
	t.Helper()
	return redistest.Must(s.BeginTx(t.Context(), nil))(t)
}

// stock makes a row of the stock, without fence and amount.
func (s *suite) stock(t *testing.T, sku string) {
	s.exec(t, "INSERT INTO stock (sku, amount) VALUES (?, 0)", sku)
}

// amount reads it.
func (s *suite) amount(t *testing.T, from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, sku string) (amount int) {
	t.Helper()
	require.NoError(t, from.QueryRowContext(t.Context(), s.query("SELECT amount FROM stock WHERE sku = ?"), sku).Scan(&amount))
	return amount
}

// holders are an earlier holder of a key, which does not know that it has lost it, and the
// present one.
func (s *suite) holders(t *testing.T, key string) (late, present *holdfast.Lease) {
	t.Helper()
	late = redistest.Must(s.first.Lock(t.Context(), key))(t)
	s.redis.Do(t, "DEL", key)
	present = redistest.Must(s.second.Lock(t.Context(), key))(t)
	return late, present
}

func (s *suite) leave(t *testing.T, late, present *holdfast.Lease) {
	t.Helper()
	require.NoError(t, present.Unlock(t.Context()))
	require.ErrorIs(t, late.Unlock(t.Context()), holdfast.ErrLost)
}
