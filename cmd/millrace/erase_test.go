package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/millrace/millrace/internal/papers/paperstest"
	"github.com/millrace/millrace/internal/waittest"
)

// The words that are in everything of a busy team, and in nothing else.
const (
	word  = "Zyzzyva"
	lower = "zyzzyva"
)

// busyTeam is a team with something of every kind, and something under way of
// each kind that can be.
type busyTeam struct {
	s             *server
	cookie, token string
	team          string
	quick         string // a workflow
	words         []string
	late          string // an upload address that nobody used yet
}

func (s *server) busy(name string) *busyTeam {
	t := s.t
	t.Helper()
	token, cookie, account := s.signUp(name)
	s.verify(name) // who has not sends no mail
	b := &busyTeam{s: s, cookie: cookie, token: token, team: account["team"].(map[string]any)["id"].(string)}
	s.want(200, "PATCH", "/auth/teams/"+b.team, `{"name":"`+word+` team"}`, "Cookie", cookie)
	s.want(201, "POST", "/auth/api-tokens", `{"name":"`+word+` token"}`, "Cookie", cookie)
	b.quick = b.made(fmt.Sprintf(`{"name":"%[1]s name","description":"%[1]s description","definition":{
		"parameters":{"p":{"type":"string","default":"x"}},"nodes":[
		{"id":"a","name":"%[1]s node","command":"echo %[1]s log $PARAM_p; echo %[1]s output > o; mkdir -p d/1/2; echo %[1]s in a folder > d/1/2/%[1]s; ln -s 2 d/1/l",
		 "outputs":{"o":{"path":"o"},"d":{"path":"d","directory":true}}}]}}`, word))
	first := b.starts(fmt.Sprintf(`{"workflowId":%q,"parameters":{"p":"%s parameter"}}`, b.quick, word))
	s.endedFor(cookie, first)
	for i := range 20 {
		s.want(200, "PUT", "/api/workflows/"+b.quick, fmt.Sprintf(`{"description":"%s changed %d %s"}`, word, i, strings.Repeat("long ", 500)), "Cookie", cookie)
	}
	endless := b.made(fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":"echo %s working; sleep 3600"}]}}`, word))
	running := b.starts(fmt.Sprintf(`{"workflowId":%q}`, endless))
	await(t, "the log of the running one", func() bool {
		return strings.Contains(s.want(200, "GET", "/api/runs/"+running, "", "Cookie", cookie)["logs"].(string), "working")
	})
	invitation := s.want(201, "POST", "/api/team/invite", `{"email":"`+lower+`@example.org","role":"member"}`, "Cookie", cookie)["id"].(string)
	s.want(200, "POST", "/auth/teams/"+b.team+"/invitations/"+invitation+"/resend", "", "Cookie", cookie)
	invite := s.want(201, "POST", "/api/collab/invites", fmt.Sprintf(`{"workflowId":%q,"role":"editor"}`, b.quick), "Cookie", cookie)
	s.join(invite["token"].(string), word+" guest")
	b.readPaper()
	b.upload()
	b.watch(running)
	b.enterRoom()
	b.words = []string{word, lower, b.quick, endless, first, running, invitation, invite["id"].(string)}
	return b
}

func (b *busyTeam) made(body string) (workflow string) {
	b.s.t.Helper()
	return b.s.want(201, "POST", "/api/workflows", body, "Cookie", b.cookie, "Idempotency-Key", fmt.Sprint(word, rand.Uint64()))["id"].(string)
}

func (b *busyTeam) starts(body string) (run string) {
	b.s.t.Helper()
	return b.s.want(202, "POST", "/api/runs", body, "Cookie", b.cookie)["runId"].(string)
}

// readPaper has an uploaded paper analysed.
func (b *busyTeam) readPaper() {
	b.s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", lower+".pdf")
	if err != nil {
		b.s.t.Fatal(err)
	}
	_, _ = part.Write(paperstest.PDF(strings.Replace(paperstest.Sample, "fastp", word+" and fastp", 1)))
	_ = w.WriteField("title", word+" title")
	if err := w.Close(); err != nil {
		b.s.t.Fatal(err)
	}
	a := b.s.want(200, "POST", "/api/ai/upload", body.String(), "Cookie", b.cookie, "Content-Type", w.FormDataContentType())
	if a["status"] != "completed" {
		b.s.t.Errorf("the paper is %v", a)
	}
}

// upload leaves a file, half of another, the address of a third, and a part of a fourth.
func (b *busyTeam) upload() {
	t := b.s.t
	t.Helper()
	body := strings.Repeat(word+" contents ", 1000)
	size := int64(len(body))
	whole, _ := b.s.presign(b.token, lower+".txt", size)
	if status := put(t, b.s.reachable(whole), strings.NewReader(body), size); status != 200 {
		t.Fatalf("upload: %d", status)
	}
	if n := len(b.s.files(b.token)); n != 3 { // with the run's outputs
		t.Errorf("%d files", n)
	}
	inParts := b.s.want(201, "POST", "/api/files/uploads", fmt.Sprintf(`{"filename":"parts.txt","contentType":"text/plain","size":%d}`, size), "Cookie", b.cookie)["uploadId"].(string)
	part := b.s.want(200, "POST", "/api/files/uploads/"+inParts+"/parts", `{"numbers":[1]}`, "Cookie", b.cookie)["data"].([]any)[0].(map[string]any)["url"].(string)
	if status := put(t, b.s.reachable(part), strings.NewReader(body), size); status != 200 {
		t.Fatalf("a part: %d", status)
	}
	b.late, _ = b.s.presign(b.token, "late.txt", size)
	large := strings.Repeat(body, 100) // so that some of it is written before it is whole
	half, _ := b.s.presign(b.token, "half.txt", int64(len(large)))
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	request, err := http.NewRequest("PUT", b.s.reachable(half), r)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len(large))
	request.Header.Set("Content-Type", "application/octet-stream")
	go func() {
		if resp, err := http.DefaultClient.Do(request); err == nil {
			resp.Body.Close()
		}
	}()
	if _, err := io.WriteString(w, large[:len(large)/2]); err != nil {
		t.Fatal(err)
	}
}

// reachable is an address of a server that thinks it is elsewhere.
func (s *server) reachable(url string) string {
	return strings.Replace(url, "http://millrace.example", s.base, 1)
}

// watch keeps a stream open.
func (b *busyTeam) watch(run string) {
	b.s.t.Helper()
	r, err := http.NewRequest("GET", b.s.base+"/api/runs/"+run+"/stream", nil)
	if err != nil {
		b.s.t.Fatal(err)
	}
	r.Header.Set("Cookie", b.cookie)
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		b.s.t.Fatalf("%v %v", resp, err)
	}
	b.s.t.Cleanup(func() { resp.Body.Close() })
}

// enterRoom keeps an editor's socket open.
func (b *busyTeam) enterRoom() *websocket.Conn {
	b.s.t.Helper()
	p := b.roomToken()
	ws, _, err := websocket.Dial(context.Background(), b.s.base+"/editor/"+p["room"].(string)+"?token="+p["token"].(string), nil)
	if err != nil {
		b.s.t.Fatal(err)
	}
	b.s.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

func (b *busyTeam) roomToken() map[string]any {
	b.s.t.Helper()
	return b.s.want(200, "POST", "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, b.quick), "Cookie", b.cookie)
}

// erase asks for the end, of a server that may die before it answers.
func (b *busyTeam) erase(s *server) (answered chan struct{}) {
	answered = make(chan struct{})
	go func() {
		defer close(answered)
		r, err := http.NewRequest("DELETE", s.base+"/api/account/data", strings.NewReader(`{"confirm":"`+b.team+`"}`))
		if err != nil {
			b.s.t.Error(err)
			return
		}
		r.Header.Set("Cookie", b.cookie)
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	return answered
}

// arriving waits until half an upload is on disk.
func (p *premises) arriving() {
	p.t.Helper()
	await(p.t, "half an upload", func() bool {
		return slices.ContainsFunc(p.traces(word), func(where string) bool { return strings.Contains(where, "/objects/tmp/") })
	})
}

// gone waits until nothing is left, and holds the server to what is told.
func (p *premises) gone(s *server, b *busyTeam) {
	p.t.Helper()
	var left []string
	if !waittest.Until(func() bool {
		left = p.traces(b.words...)
		return len(left) == 0
	}) {
		p.t.Fatalf("left: %s\n%s", left, s.log)
	}
	if strings.Contains(s.log.String(), word) {
		p.t.Errorf("the server's log tells of it: %s", s.log)
	}
}

// A team is erased while it is at work, and the server is killed again and
// again on the way: in the end nothing of it is anywhere in the data folder,
// free pages and write-ahead log included.
func TestAnErasureSurvivesAServerThatIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	p := &premises{t: t, args: []string{"--sandbox", "none"}}
	data := p.folder()
	s := p.serve(data)
	p.args = append(p.args, "--public-urls", s.base)
	b := s.busy("ada")
	p.arriving()
	if found := p.traces(b.words...); len(found) < 8 {
		t.Fatalf("the test looks in the wrong place: %v", found)
	}
	answered := b.erase(s)
	await(t, "the team to be closed", func() bool {
		status, _, _ := s.call("GET", "/api/me", "", "Cookie", b.cookie)
		return status == 403
	})
	for range 12 {
		<-time.After(rand.N(400 * time.Millisecond)) // any moment
		s.kill()
		s = p.serve(data)
		s.want(403, "GET", "/api/me", "", "Cookie", b.cookie)
	}
	<-answered
	p.gone(s, b)
	if len(p.traces(b.team)) == 0 {
		t.Error("there is no tombstone")
	}
	s.want(201, "POST", "/auth/teams", `{"name":"another"}`, "Cookie", b.cookie)
	s.want(201, "POST", "/api/workflows", `{"name":"w"}`, "Cookie", b.cookie)
}

// The same on PostgreSQL, with files on disk and in a bucket, where the server
// is killed at one step after the other.
func TestAnErasureElsewhereSurvivesAServerThatIsKilledAtEachStep(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		killedAtEachStep(t, onPostgres(t))
	})
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		p := onPostgres(t)
		p.withBucket()
		killedAtEachStep(t, p)
	})
}

func killedAtEachStep(t *testing.T, p *premises) {
	data := p.folder()
	s := p.serve(data)
	b := s.busy("ada")
	if p.bucket == nil {
		p.arriving()
	}
	if found := p.traces(b.words...); len(found) < 20 {
		t.Fatalf("the test looks in the wrong place: %v", found)
	}
	reached, let := p.stopAt("UPDATE", "share_invites") // the last that is changed to close the team
	answered := b.erase(s)
	reached()
	s.kill()
	let()
	<-answered
	if closed := p.column(`SELECT team_id FROM erasures`); len(closed) != 0 {
		t.Errorf("it is half closed: %v", closed)
	}
	for i, step := range []string{
		"INSERT INTO run_events", "INSERT INTO kept_invoices", "DELETE FROM run_logs", "DELETE FROM files", "DELETE FROM documents",
		"DELETE FROM readings", "DELETE FROM memberships", "DELETE FROM teams",
	} {
		at := strings.LastIndex(step, " ")
		statement, table := step[:at], step[at+1:]
		p.exec(`UPDATE erasures SET lease_until = 0`) // what the dead one held is over
		p.exec(`UPDATE runs SET lease_until = 0 WHERE status = 'running'`)
		if i == 0 {
			s = p.serve(data)
			s.want(200, "GET", "/api/me", "", "Cookie", b.cookie)
			reached, let = p.stopAt(statement, table)
			answered = b.erase(s)
			await(t, "the team to be closed", func() bool { return len(p.column(`SELECT team_id FROM erasures`)) == 1 })
		} else {
			reached, let = p.stopAt(statement, table)
			s = p.serve(data)
			s.want(403, "GET", "/api/me", "", "Cookie", b.cookie)
		}
		reached()
		s.kill()
		let()
	}
	<-answered
	p.exec(`UPDATE erasures SET lease_until = 0`)
	s = p.serve(data)
	p.gone(s, b)
	if left := p.traces(b.team); len(left) != 1 || left[0] != b.team+" in table erasures" {
		t.Errorf("left: %v", left)
	}

	// An address of the bucket outlives the team. What comes by it goes again.
	body := strings.Repeat(word+" contents ", 1000)
	status := put(t, s.reachable(b.late), strings.NewReader(body), int64(len(body)))
	if taken := len(p.traces(word)) > 0; taken != (p.bucket != nil) {
		t.Errorf("the late upload is answered %d", status)
	}
	p.exec(`UPDATE erasures SET sweep_at = 0, sweep_until = 0`)
	p.gone(s, b)
	await(t, "the end of the tombstone", func() bool { return len(p.traces(b.team)) == 0 })
}

// Two servers: the one that erases dies, and the other goes on with it. A
// server that sleeps while a team is erased and wakes up with edits that
// nobody has stored brings nothing back.
func TestAnotherServerErasesOnAndNoneBringsAnythingBack(t *testing.T) {
	t.Parallel()
	p := onPostgres(t)
	p.withBucket()
	b := p.serve(p.folder()) // carries the runs: there is nobody else yet
	first, second := b.busy("ada"), b.busy("bob")
	home := p.folder()
	a := p.serve(home)
	a.want(201, "POST", "/api/team/invite", `{"email":"`+lower+`2@example.org","role":"member"}`, "Cookie", first.cookie)
	reached, let := p.stopAt("DELETE FROM", "workflow_revisions")
	answered := first.erase(a)
	reached()
	a.kill()
	let()
	<-answered
	p.exec(`UPDATE erasures SET lease_until = 0`)
	first.words = first.words[2:] // the other team has the same words
	p.gone(b, first)

	c := newEditors(t)
	c.open("bob", b, second.roomToken())
	c.wait("bob", "provider.synced")
	b.want(200, "POST", "/api/runs/"+second.words[5]+"/cancel", "", "Cookie", second.cookie)
	b.endedFor(second.cookie, second.words[5])
	a = p.serve(home)
	b.pause()
	c.add("bob", word)
	<-second.erase(a) // PostgreSQL ends transactions that stand still
	b.signal(syscall.SIGCONT)
	c.wait("bob", "me.closed")
	p.gone(b, second)
	p.gone(a, second)
	if teams := p.column(`SELECT id FROM teams`); len(teams) != 0 {
		t.Errorf("left: %v", teams)
	}
}

// Nothing is killed: the answer comes when nothing is left, and whoever was
// connected is not any more.
func TestAnErasureEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	p := &premises{t: t, args: []string{"--sandbox", "none"}}
	s := p.serve(p.folder())
	b := s.busy("ada")
	p.arriving()
	ws := b.enterRoom()
	gone := s.want(200, "DELETE", "/api/account/data", `{"confirm":"`+b.team+`"}`, "Cookie", b.cookie)
	if counts := gone["counts"].(map[string]any); counts["runs"] != 2.0 || counts["workflows"] != 2.0 || counts["files"] != 3.0 || counts["analyses"] != 1.0 {
		t.Errorf("%v", gone)
	}
	if left := p.traces(b.words...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for {
		if _, _, err := ws.Read(t.Context()); err != nil {
			break
		}
	}
}
