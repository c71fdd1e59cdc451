package kernel

import (
	"io"
	"net/http"
	"time"
)

// IdleTime is how long bytes may fail to move before we hang up.
const IdleTime = time.Minute

// IdleReader pushes the deadlines of a connection on as long as bytes come.
type IdleReader struct {
	Body io.Reader
	Conn *http.ResponseController
}

func (r *IdleReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(IdleTime)
	_ = r.Conn.SetReadDeadline(deadline) // not every connection has one
	_ = r.Conn.SetWriteDeadline(deadline.Add(IdleTime))
	return r.Body.Read(p)
}
