package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// client is a person, who comes over the proxy.
type client struct {
	http  *http.Client
	token string
}

// browser trusts the proxy's authority alone, and finds every name there.
func (c *composition) browser() *http.Client {
	c.t.Helper()
	if c.http != nil {
		return c.http
	}
	root := filepath.Join(c.mapped("proxy", "/data"), "caddy/pki/authorities/local/root.crt")
	text, err := os.ReadFile(root)
	c.must(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(text)
	c.http = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted},
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(at)
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(c.ip["proxy"], port))
		},
	}}
	return c.http
}

func (c *composition) call(method, path, body string) map[string]any {
	c.t.Helper()
	r, err := http.NewRequest(method, "https://localhost"+path, strings.NewReader(body))
	c.must(err)
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.browser().Do(r)
	c.must(err)
	defer resp.Body.Close()
	var answer map[string]any
	c.must(json.NewDecoder(resp.Body).Decode(&answer))
	if resp.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %s %v", method, path, resp.Status, answer)
	}
	if data, is := answer["data"].(map[string]any); is {
		return data
	}
	return answer
}

func (c *composition) signIn(email, password string) {
	c.t.Helper()
	c.token = c.call("POST", "/auth/sign-in", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))["token"].(string)
}

// run starts one with a file that was sent to the object store, and returns its id.
func (c *composition) run(word string) string {
	c.t.Helper()
	w := c.call("POST", "/api/workflows", fmt.Sprintf(`{"name":%q,"definition":{
		"inputs":{"file":{"type":"file"}},
		"nodes":[{"id":"a","command":"tr a-z A-Z < $INPUT_in > o.txt","inputs":{"in":{"from":"inputs.file"}},"outputs":{"o":{"path":"o.txt"}}}],
		"outputs":{"o":{"from":"a.o"}}}}`, word))["id"].(string)
	sent := c.call("POST", "/api/files/presign", fmt.Sprintf(`{"filename":"%s.txt","contentType":"text/plain","size":%d}`, word, len(word)))
	r, err := http.NewRequest("PUT", sent["url"].(string), bytes.NewReader([]byte(word)))
	c.must(err)
	r.Header.Set("Content-Type", "text/plain")
	if r.Host != "files.localhost" {
		c.t.Errorf("files are sent to %s", r.Host)
	}
	resp, err := c.browser().Do(r)
	c.must(err)
	said, err := io.ReadAll(resp.Body)
	c.must(err)
	c.must(resp.Body.Close())
	if resp.StatusCode != 200 {
		c.t.Fatalf("%s %s", resp.Status, said)
	}
	c.call("GET", "/api/files", "") // takes note of what has arrived
	return c.call("POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"inputs":{"file":%q}}`, w, sent["key"]))["runId"].(string)
}

// ends waits for the end of a run, and fetches what it made.
func (c *composition) ends(run, word string) {
	c.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		r := c.call("GET", "/api/runs/"+run, "")
		if r["status"] == "completed" {
			break
		}
		if r["completedAt"] != nil || time.Now().After(deadline) {
			c.t.Fatalf("%v: %v %v", r["status"], r["errorMessage"], r["waiting"])
		}
	}
	outputs := c.call("GET", "/api/runs/"+run+"/outputs", "")["data"].([]any)
	resp, err := c.browser().Get(outputs[0].(map[string]any)["url"].(string))
	c.must(err)
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != strings.ToUpper(word) || resp.Request.URL.Host != "files.localhost" {
		c.t.Errorf("%s %v", text, err)
	}
}
