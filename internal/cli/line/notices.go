package line

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
)

// Notices are those of a server's operators, told once per command.
type Notices struct {
	Server string
	told   sync.Once
}

// noticeWait is how long a command waits for the text of a notice at most.
const noticeWait = 2 * time.Second

// tellNotice prints the operators' notice where a response says that there is one. A notice that
// cannot be read is left out: no command fails or stands still for it.
func (c *Calls) tellNotice(r *http.Request, resp *http.Response) {
	if resp == nil || resp.Header.Get("X-Notice") == "" || c.Notices == nil {
		return
	}
	c.Notices.told.Do(func() {
		ctx, cancel := context.WithTimeout(r.Context(), noticeWait)
		defer cancel()
		n, err := c.readNotice(ctx)
		if err != nil || n.Text == nil || *n.Text == "" {
			return
		}
		label := "Notice"
		if n.Level != nil && *n.Level == "warning" {
			label = "Warning"
		}
		c.Tell("%s from the operator: %s", label, screen.Clean(*n.Text))
	})
}

func (c *Calls) readNotice(ctx context.Context) (n api.Notice, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Notices.Server+"/api/notice", nil)
	if err != nil {
		return n, err
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return n, err
	}
	defer resp.Body.Close()
	var said struct {
		Data api.Notice `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said)
	return said.Data, err
}
