package single

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// While few calls are under way, each goes out alone; the next one joins a batch.
func TestBatch_Few(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	s := newBatcher(func() int64 { return few }, nil, func(_ context.Context, _ int, ask int) (int, error) {
		begun <- true
		<-goOn
		return ask, nil
	}, nil)
	c, _ := s.Join(0, 0, false)
	var all sync.WaitGroup
	for i := range few {
		all.Go(func() {
			answer, err := s.do(context.Background(), 0, i)
			require.NoError(t, err)
			require.Equal(t, i, answer)
		})
		<-begun
	}
	all.Go(func() {
		answer, err := s.do(context.Background(), 0, few)
		require.NoError(t, err)
		require.Equal(t, -1, answer)
	})
	require.Eventually(t, func() bool { return s.Size(c) == 2 }, redistest.Patience, time.Millisecond)
	s.Close(c)
	c.Answers = []scripts.Result[int]{{}, {Value: -1}}
	close(c.Came)
	close(goOn)
	all.Wait()
	require.Zero(t, s.underWay.Load())
}
