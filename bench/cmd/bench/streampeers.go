package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// source is a stream of events.
type source struct {
	url     string
	header  string
	events  string // where they are listed
	publish string // or where they are sent to
}

// streamPeers tell many clients of ten moments a second.
var streamPeers = []peer{
	{name: us, readyPath: millrace.readyPath, command: taskServer("none"), prepare: generous, source: millraceSource},
	{name: "bare", readyPath: "/health", command: bareStream("333ms"), source: bareSource},
	{name: "bare raw", readyPath: "/health", command: bareStream("0s"), source: bareSource},
	{name: "mercure", readyPath: "/", prepare: mercureConfig, source: mercureSource, command: func(_, dir string) []string {
		return []string{"mercure", "run", "--config", filepath.Join(dir, "Caddyfile"), "--adapter", "caddyfile"}
	}},
}

// millraceSource is a run that takes ten steps a second, each of which ends a
// task and begins another.
func millraceSource(s settings, p *process, of peer) (source, error) {
	sess, err := millrace.signIn(s, p)
	if err != nil {
		return source{}, err
	}
	c := &caller{client: http.Client{Timeout: 30 * time.Second}}
	if c.auth, err = sess.authorization(); err != nil {
		return source{}, err
	}
	var workflow struct{ Data struct{ ID string } }
	if err := c.post(p.base+"/api/workflows", map[string]any{"name": "steps", "definition": steps(s.length)}, &workflow); err != nil {
		return source{}, err
	}
	// Signing up takes memory that is not the stream's.
	if err := p.again(s, of); err != nil {
		return source{}, err
	}
	var run struct{ Data struct{ RunID string } }
	if err := c.post(p.base+"/api/runs", map[string]any{"workflowId": workflow.Data.ID}, &run); err != nil {
		return source{}, err
	}
	at := p.base + "/api/runs/" + run.Data.RunID
	return source{url: at + "/stream", events: at + "/events", header: "Authorization: " + c.auth}, nil
}

// steps are tasks one after the other, enough for a load and for everybody to
// come before it.
func steps(length time.Duration) map[string]any {
	nodes, edges := []any{}, []any{}
	for i := range int((length + 30*time.Second).Seconds() * eventRate) {
		id := fmt.Sprintf("t%d", i)
		nodes = append(nodes, map[string]any{"id": id, "command": fmt.Sprintf("echo %d; sleep 0.08", i)})
		if i > 0 {
			edges = append(edges, map[string]any{"id": "e" + id, "source": fmt.Sprintf("t%d", i-1), "target": id})
		}
	}
	return map[string]any{"nodes": nodes, "edges": edges}
}

func bareStream(pause string) func(addr, dir string) []string {
	return func(addr, dir string) []string {
		return []string{"streambare", "-listen", addr, "-log", filepath.Join(dir, "events.log"), "-rate", fmt.Sprint(eventRate), "-pause", pause}
	}
}

func bareSource(_ settings, p *process, _ peer) (source, error) {
	return source{url: p.base + "/stream", events: p.base + "/events"}, nil
}

const mercureKey = "a-key-of-the-bench-that-is-long-enough"

// mercureConfig keeps what is published in Mercure's own database.
func mercureConfig(addr, dir string) error {
	return os.WriteFile(filepath.Join(dir, "Caddyfile"), fmt.Appendf(nil, `{
	admin off
	auto_https off
	persist_config off
	log {
		level ERROR
	}
}
http://%s {
	mercure {
		anonymous
		publisher_jwt %s
		transport bolt {
			path %s
		}
	}
	respond "ok" 200
}
`, addr, mercureKey, filepath.Join(dir, "updates.db")), 0o600)
}

func mercureSource(_ settings, p *process, _ peer) (source, error) {
	hub := p.base + "/.well-known/mercure"
	enc := base64.RawURLEncoding.EncodeToString
	token := enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(`{"mercure":{"publish":["*"]}}`))
	mac := hmac.New(sha256.New, []byte(mercureKey))
	mac.Write([]byte(token))
	return source{url: hub + "?topic=run", publish: hub, header: "Authorization: Bearer " + token + "." + enc(mac.Sum(nil))}, nil
}
