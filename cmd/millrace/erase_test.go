package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// findings are the files below a folder that hold one of the words, in their
// name or anywhere in their bytes.
func findings(t *testing.T, folder string, words ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went away while we looked
		}
		text := []byte(strings.TrimPrefix(path, folder))
		if e.Type().IsRegular() {
			more, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			text = append(text, more...)
		}
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) {
				found = append(found, word+" in "+strings.TrimPrefix(path, folder))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// busyTeam is a team with something of every kind, and something under way of
// each kind that can be. The words are in all of it.
func busyTeam(s *server, cookie string) (words []string) {
	t := s.t
	t.Helper()
	const word = "Zyzzyva"
	made := func(body string) string {
		return s.want(201, "POST", "/api/workflows", body, "Cookie", cookie)["id"].(string)
	}
	quick := made(fmt.Sprintf(`{"name":"%[1]s name","description":"%[1]s description","definition":{"nodes":[
		{"id":"a","name":"%[1]s node","command":"echo %[1]s log; echo %[1]s output > o","outputs":{"o":{"path":"o"}}}]}}`, word))
	first := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, quick), "Cookie", cookie)["runId"].(string)
	s.endedFor(cookie, first)
	for i := range 20 {
		s.want(200, "PUT", "/api/workflows/"+quick, fmt.Sprintf(`{"description":"%s changed %d %s"}`, word, i, strings.Repeat("long ", 500)), "Cookie", cookie)
	}
	endless := made(fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":"echo %s working; sleep 3600"}]}}`, word))
	running := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, endless), "Cookie", cookie)["runId"].(string)
	await(t, "the log of the running one", func() bool {
		return strings.Contains(s.want(200, "GET", "/api/runs/"+running, "", "Cookie", cookie)["logs"].(string), "working")
	})
	s.want(201, "POST", "/api/team/invite", `{"email":"zyzzyva@example.org","role":"member"}`, "Cookie", cookie)
	s.want(201, "POST", "/api/collab/invites", fmt.Sprintf(`{"workflowId":%q,"role":"editor"}`, quick), "Cookie", cookie)
	token := s.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	body := strings.Repeat(word+" contents ", 1000)
	url, _ := s.presign(token, "zyzzyva.txt", int64(len(body)))
	if status := put(t, url, strings.NewReader(body), int64(len(body))); status != 200 {
		t.Fatalf("upload: %d", status)
	}
	s.halfUpload(token, body)
	s.watchRun(cookie, running)
	s.enterRoom(cookie, quick)
	return []string{word, "zyzzyva", quick, endless, first, running}
}

// halfUpload sends the first half of an upload and holds the line.
func (s *server) halfUpload(token, body string) {
	s.t.Helper()
	url, _ := s.presign(token, "half.txt", int64(len(body)))
	r, w := io.Pipe()
	s.t.Cleanup(func() { w.Close() })
	request, err := http.NewRequest("PUT", url, r)
	if err != nil {
		s.t.Fatal(err)
	}
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", "application/octet-stream")
	go func() {
		if resp, err := http.DefaultClient.Do(request); err == nil {
			resp.Body.Close()
		}
	}()
	if _, err := io.WriteString(w, body[:len(body)/2]); err != nil {
		s.t.Fatal(err)
	}
}

// watchRun keeps a stream open.
func (s *server) watchRun(cookie, run string) {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.base+"/api/runs/"+run+"/stream", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Cookie", cookie)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		s.t.Fatalf("%v %v", resp, err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
}

// enterRoom keeps an editor's socket open.
func (s *server) enterRoom(cookie, workflow string) *websocket.Conn {
	s.t.Helper()
	p := s.want(200, "POST", "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, workflow), "Cookie", cookie)
	ws, _, err := websocket.Dial(context.Background(), s.base+"/editor/"+p["room"].(string)+"?token="+p["token"].(string), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// A team is erased while it is at work, and the server is killed again and
// again on the way: in the end nothing of it is anywhere in the data folder,
// free pages and write-ahead log included.
func TestAnErasureSurvivesAServerThatIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	args := []string{"--data", data, "--sandbox", "none"}
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	_, cookie, account := s.signUp("ada")
	team := account["team"].(map[string]any)["id"].(string)
	words := busyTeam(s, cookie)
	if found := findings(t, data, words...); len(found) < 8 {
		t.Fatalf("the test looks in the wrong place: %v", found)
	}
	erase := func(s *server) {
		r, err := http.NewRequest("DELETE", s.base+"/api/account/data", strings.NewReader(`{"confirm":"`+team+`"}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); erase(s) }()
	await(t, "the team to be closed", func() bool {
		status, _, _ := s.call("GET", "/api/me", "", "Cookie", cookie)
		return status == 403
	})
	for range 12 {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the moment is the point
		s.kill()
		s = start(t, args...)
		s.want(403, "GET", "/api/me", "", "Cookie", cookie)
	}
	<-done
	await(t, "the end of the erasure", func() bool { return len(findings(t, data, words...)) == 0 })
	if len(findings(t, data, team)) == 0 {
		t.Error("there is no tombstone")
	}
	s.want(201, "POST", "/auth/teams", `{"name":"another"}`, "Cookie", cookie)
	s.want(201, "POST", "/api/workflows", `{"name":"w"}`, "Cookie", cookie)
}

// Nothing is killed: the answer comes when nothing is left, and whoever was
// connected is not any more.
func TestAnErasureEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data, "--sandbox", "none")
	_, cookie, account := s.signUp("ada")
	team := account["team"].(map[string]any)["id"].(string)
	words := busyTeam(s, cookie)
	ws := s.enterRoom(cookie, words[2])
	gone := s.want(200, "DELETE", "/api/account/data", `{"confirm":"`+team+`"}`, "Cookie", cookie)
	if counts := gone["counts"].(map[string]any); counts["runs"] != 2.0 || counts["workflows"] != 2.0 || counts["files"] != 2.0 {
		t.Errorf("%v", gone)
	}
	for {
		if _, _, err := ws.Read(t.Context()); err != nil {
			break
		}
	}
	// The half upload is still held open by its sender.
	left := findings(t, data, words...)
	for _, f := range left {
		if !strings.Contains(f, " in /objects/tmp/") {
			t.Errorf("left: %s", f)
		}
	}
}
