package httpholdfast

import (
	"bufio"
	"errors"
	"net"
	"net/http"
)

// writer knows whether the handler has answered. Flush and Hijack are for handlers that do not
// use [http.ResponseController].
type writer struct {
	http.ResponseWriter
	responded bool
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.responded = w.responded || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.responded = true
	return w.ResponseWriter.Write(p)
}

func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is what [http.ResponseController] calls.
func (w *writer) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.responded = w.responded || !errors.Is(err, http.ErrNotSupported)
	return err
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.responded = w.responded || err == nil
	return conn, rw, err
}
