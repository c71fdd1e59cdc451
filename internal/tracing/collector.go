package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector sends spans by HTTP. It is an otlptrace.Client: OpenTelemetry makes the
// spans and their wire format, and this sends the bytes. OpenTelemetry's own client
// for HTTP links all of gRPC.
type collector struct {
	http     *http.Client
	endpoint string
	headers  http.Header
}

const (
	sendTime  = 10 * time.Second // of one request
	firstWait = time.Second      // before a busy collector is asked again; then twice as long
)

func newCollector(endpoint string, env func(string) string) (*collector, error) {
	headers := http.Header{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(env(name), ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			key, value, found := strings.Cut(pair, "=")
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !found || err != nil {
				return nil, fmt.Errorf("%s must be a list such as key=value,key=value, with values escaped as in addresses", name)
			}
			headers.Set(strings.TrimSpace(key), value)
		}
	}
	headers.Set("Content-Type", "application/x-protobuf")
	headers.Set("User-Agent", "Millrace")
	return &collector{http: &http.Client{Timeout: sendTime}, endpoint: endpoint, headers: headers}, nil
}

func (*collector) Start(context.Context) error { return nil }

func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans until the collector takes or refuses them, or ctx ends.
func (c *collector) UploadTraces(ctx context.Context, spans []*wire.ResourceSpans) error {
	// In protobuf, the request of a collector is what TracesData is: a list of
	// resources with their spans, as field 1.
	body, err := proto.Marshal(&wire.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait *= 2 {
		busy, err := c.send(ctx, body)
		if busy < 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(max(wait, busy)):
		}
	}
}

// send makes one request. When the collector asks to be asked again, busy is the time
// that it wants to have until then, and else negative.
func (c *collector) send(ctx context.Context, body []byte) (busy time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	r.Header = c.headers.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		return -1, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return -1, nil
	}
	err = fmt.Errorf("the collector answers %s", resp.Status)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
		return time.Duration(seconds) * time.Second, err
	}
	return -1, err
}
