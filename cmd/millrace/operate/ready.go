package operate

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Ready asks over the network, as a health check that has neither shell nor curl.
type Ready struct {
	Address string `arg:"" optional:"" default:"http://127.0.0.1:8080/api/health/ready" help:"URL to check; for a worker, /health at its --admin-listen."`
}

// Run fails unless the answer is 200.
func (c *Ready) Run(w Console) error {
	r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, c.Address, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	fmt.Fprintln(w.Out, "ready")
	return nil
}
