package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// What is asked of the server is what was typed, results are all that stands on standard
// output, and what is shown once is shown to scripts as well.
func TestEachCommandAsksForWhatWasTyped(t *testing.T) {
	t.Parallel()
	const at = "2020-03-02T12:00:00.000Z"
	token := `{"id":"tok_1","name":"ci","token":"mrt_secret","expiresAt":"` + at + `"}`
	server := clitest.ServeAPI(t, map[string]string{
		"GET /api/workflows/wf_1":                               clitest.Data(`{"id":"wf_1","name":"count","definition":{"nodes":[]}}`),
		"DELETE /api/workflows/wf_1":                            clitest.Data(`{"id":"wf_1","deleted":true}`),
		"POST /api/workflows/wf_1/detach":                       clitest.Data(`{"id":"wf_1"}`),
		"POST /api/workflows/rename-folder":                     clitest.Data(`{"moved":1}`),
		"POST /api/workflows":                                   "201 " + clitest.Data(`{"id":"wf_2","name":"y\u001b[2J","git":{"git":"g","commit":"0123456789abcdef"},"problems":[{"path":"nodes","message":"there is none"}]}`),
		"GET /api/notifications":                                clitest.Data(`{"unread":1,"notifications":[]}`),
		"PUT /api/notifications":                                clitest.Data(`{"unread":0,"marked":1}`),
		"POST /api/collab/invites":                              "201 " + clitest.Data(`{"id":"inv_1","link":"https://x/join#mri_1","role":"editor","expiresAt":"`+at+`"}`),
		"POST /api/team/invite":                                 "201 " + clitest.Data(`{"id":"ti_1","email":"a@b.c","role":"admin","mailed":false,"link":"https://x/i","expiresAt":"`+at+`"}`),
		"POST /api/service-accounts":                            "201 " + clitest.Data(`{"id":"user_9","name":"ci","role":"viewer","tokens":[]}`),
		"POST /api/service-accounts/user_1/tokens":              "201 " + clitest.Data(token),
		"POST /api/service-accounts/user_1/tokens/tok_1/rotate": "201 " + clitest.Data(token),
		"PATCH /api/workflows/wf_1/schedules/sch_1":             clitest.Data(`{"id":"sch_1"}`),
		"PUT /api/secrets/A":                                    clitest.Data(`{"name":"A","version":2,"updatedAt":"` + at + `"}`),
		"POST /api/webhooks":                                    "201 " + clitest.Data(`{"id":"wh_1","url":"https://x","events":[],"enabled":true,"secret":"whsec_1"}`),
		"POST /api/webhooks/wh_1/test":                          clitest.Data(`{"id":"msg_1","status":"failed","responseStatus":500,"error":"no\u001b[2J","attempts":1,"createdAt":"` + at + `"}`),
	})
	check(t, server, map[string]typed{
		"what is unread":            {"notifications", "", "WHEN  TYPE  WHAT  WHERE\n", "", "GET /api/notifications?unread=true"},
		"an invitation by link":     {"invite link wf_1 --role editor --hours 1 --uses 2 --max-credits 0 --allow-secrets --allow-results", "", "https://x/join#mri_1\n", "", `POST /api/collab/invites {"allowResults":true,"allowSecrets":true,"expiresInHours":1,"maxCredits":0,"maxUses":2,"role":"editor","workflowId":"wf_1"}`},
		"one of no limits":          {"invite link wf_1", "", "https://x/join#mri_1\n", "", `POST /api/collab/invites {"allowResults":false,"allowSecrets":false,"role":"viewer","workflowId":"wf_1"}`},
		"an invitation by mail":     {"invite member a@b.c --role admin", "", "invited a@b.c as admin; the invitation expires 2020-03-02\nno email was sent, since your own email address is not confirmed: send them this link, https://x/i\n", "", `POST /api/team/invite {"email":"a@b.c","role":"admin"}`},
		"a service account":         {"service-accounts create ci --role viewer", "", "user_9\n", "", `POST /api/service-accounts {"name":"ci","role":"viewer"}`},
		"a token":                   {"service-accounts token user_1 ci --scopes read,run --days 5", "", "mrt_secret\n", "", `POST /api/service-accounts/user_1/tokens {"expiresInDays":5,"name":"ci","scopes":["read","run"]}`},
		"a token of its role":       {"service-accounts token user_1 ci", "", "mrt_secret\n", "", `POST /api/service-accounts/user_1/tokens {"name":"ci"}`},
		"another token":             {"service-accounts rotate user_1 tok_1 --overlap 0", "", "mrt_secret\n", "", `POST /api/service-accounts/user_1/tokens/tok_1/rotate {"overlapHours":0}`},
		"another, for a day":        {"service-accounts rotate user_1 tok_1", "", "mrt_secret\n", "", `POST /api/service-accounts/user_1/tokens/tok_1/rotate {"overlapHours":24}`},
		"a schedule, off":           {"schedules pause wf_1 sch_1", "", "sch_1 is paused\n", "", `PATCH /api/workflows/wf_1/schedules/sch_1 {"enabled":false}`},
		"a schedule, on":            {"schedules resume wf_1 sch_1", "", "sch_1 is resumed\n", "", `PATCH /api/workflows/wf_1/schedules/sch_1 {"enabled":true}`},
		"a secret":                  {"secrets set A", "a\nb\n", "set A, version 2\n", "", `PUT /api/secrets/A {"value":"a\nb"}`},
		"a secret of nothing":       {"secrets set A", "", "", "standard input is empty", "no more"},
		"a secret for all to see":   {"secrets set A value", "", "", "unexpected argument value", "no more"},
		"a folder, taken away":      {"workflows rename-folder A/B ''", "", "1 workflow moved\n", "", `POST /api/workflows/rename-folder {"from":"A/B","to":""}`},
		"a workflow of Git":         {"workflows create --git https://x/y.git --ref main --path p", "", "created wf_2 y[2J at commit 0123456\n\nIt cannot run yet:\n  there is none\n", "", `POST /api/workflows {"git":{"git":"https://x/y.git","path":"p","ref":"main"}}`},
		"no workflow any more":      {"workflows delete wf_1 --yes", "", "deleted wf_1\n", "", "DELETE /api/workflows/wf_1"},
		"without being sure":        {"workflows delete wf_1", "y\n", "", "cannot ask for confirmation here: use --yes", "no more"},
		"no more from Git":          {"workflows detach wf_1 -y", "", "detached wf_1: it can be edited here now\n", "", "POST /api/workflows/wf_1/detach"},
		"no more, unsure":           {"workflows detach wf_1", "y\n", "", "cannot ask for confirmation here: use --yes", "no more"},
		"a webhook that is tried":   {"webhooks test wh_1", "", "failed, answered 500: no[2J\n", "", "POST /api/webhooks/wh_1/test"},
		"a webhook of no format":    {"webhooks create https://x --format irc", "", "", "--format must be one of", "no more"},
		"a webhook of no template":  {"webhooks create https://x --template /gone.json", "", "", "/gone.json", "no more"},
		"a role that there isn't":   {"service-accounts create ci --role owner", "", "", "--role must be one of", "no more"},
		"a member of another role":  {"invite member a@b.c --role owner", "", "", "--role is member or admin", "no more"},
		"a number that is no whole": {"invite link wf_1 --uses 1.5", "", "", "--uses", "no more"},
	})
	d := clitest.New(t)
	d.SignedIn(t, server.URL, line.Grant{Token: "oat_1"})
	if code := d.Type(&Commands{}, "", "webhooks", "create", "https://x", "--event", "run.failed", "--event", "a,b"); code != 0 || d.Printed.String() != "wh_1\n" || d.Errors.String() != "Messages are signed with whsec_1. It is shown only once.\n" {
		t.Errorf("a webhook: %d, printed %q, told %q", code, d.Printed, d.Errors)
	}
	if calls := server.Calls(); calls[0] != `POST /api/webhooks {"events":["run.failed","a,b"],"format":"standard","url":"https://x"}` {
		t.Errorf("a webhook is asked for by %s", calls)
	}
	// What is marked as read has been shown.
	if code := d.Type(&Commands{}, "", "notifications", "--read", "--all"); code != 0 {
		t.Errorf("%d, told %q", code, d.Errors)
	}
	if got := strings.Join(server.Calls(), "; "); got != `GET /api/notifications?unread=false; PUT /api/notifications {"all":true}` {
		t.Errorf("it asks %s", got)
	}
}

func TestOpenUploadsAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	server := clitest.ServeAPI(t, map[string]string{
		"GET /api/files/uploads":         clitest.Data(`[{"uploadId":"up_1","filename":"reads","size":2048,"createdAt":"2020-03-02T12:00:00.000Z","expiresAt":"2020-03-09T12:00:00.000Z","createdBy":{"id":"user_1","name":"Ada"}}]`),
		"DELETE /api/files/uploads/up_1": clitest.Data(`{"aborted":true,"uploadId":"up_1"}`),
	})
	const list = "UPLOAD  NAME   SIZE    BY   BEGAN       EXPIRES\nup_1    reads  2.0 KB  Ada  2020-03-02  2020-03-09\n"
	check(t, server, map[string]typed{
		"listed":           {"files uploads", "", list, "", "GET /api/files/uploads"},
		"cancelled":        {"files uploads rm up_1", "", "cancelled up_1\n", "", "DELETE /api/files/uploads/up_1"},
		"one that is gone": {"files uploads rm up_1 up_2", "", "cancelled up_1\n", "up_2: ", ""},
	})
	check(t, clitest.ServeAPI(t, map[string]string{"GET /api/files/uploads": clitest.Data("[]")}), map[string]typed{"none": {"files uploads", "", "", "", ""}})
}

// listing is a team with a file of each kind, on two pages.
func listing(t *testing.T) *clitest.API {
	t.Helper()
	file := func(key, name, source, sha256 string) string {
		return fmt.Sprintf(`{"key":%q,"name":%q,"source":%q,"size":2,"sha256":%s,"url":"SERVER/bytes","createdAt":"2020-03-02T12:00:00.000Z"}`, key, name, source, sha256)
	}
	hash := `"` + sumOf("ax") + `"`
	return clitest.ServeAPI(t, map[string]string{
		"GET /api/files?limit=200":          `{"success":true,"data":[` + file("k/1", "a.txt", "upload", hash) + "," + file("k/2", "twin", "upload", hash) + `],"page":{"hasMore":true,"nextCursor":"c"}}`,
		"GET /api/files?cursor=c&limit=200": clitest.Data("[" + file("k/3", "twin", "output", hash) + "," + file("k/4", "../b", "output", hash) + "," + file("k/5", "new", "upload", "null") + "]"),
		"POST /api/files/delete":            clitest.Data(`{"key":"k/1","deleted":true}`),
		"GET /bytes":                        "ax",
	})
}

func TestFilesAreFoundByTheirKeysOrNames(t *testing.T) {
	t.Parallel()
	const head = "NAME   SOURCE  SIZE  CREATED     KEY\n"
	check(t, listing(t), map[string]typed{
		"some":                  {"files -n 1", "", head + "a.txt  upload  2 B   2020-03-02  k/1\n", "", "GET /api/files?limit=200"},
		"those of a source":     {"files --source output -n 1", "", "NAME  SOURCE  SIZE  CREATED     KEY\ntwin  output  2 B   2020-03-02  k/3\n", "", "GET /api/files?cursor=c&limit=200"},
		"none":                  {"files -n 0", "", "", "--limit must be at least 1", "no more"},
		"of no source":          {"files --source bucket", "", "", "--source must be one of", "no more"},
		"deleted and confirmed": {"files rm --yes a.txt", "", "deleted k/1\n", "", `POST /api/files/delete {"key":"k/1","source":"upload"}`},
		"deleted by its name":   {"files rm a.txt", "", "deleted k/1\n", "", `POST /api/files/delete {"key":"k/1","source":"upload"}`},
		"deleted by its key":    {"files rm k/3", "", "deleted k/1\n", "", `POST /api/files/delete {"key":"k/3","source":"output"}`},
		"one of two":            {"files rm twin", "", "", `2 files are called "twin": use the key, see millrace files ls`, "no more"},
		"until one is not":      {"files rm a.txt nothing k/2", "", "deleted k/1\n", `the team has no file "nothing": see millrace files ls`, ""},
	})
	for name, tt := range map[string]struct{ file, there, tells string }{
		"by its name":        {"a.txt", "a.txt", ""},
		"by its key":         {"k/2", "twin", ""},
		"without a hash":     {"new", "new", ""},
		"one of two":         {"twin", "", "2 files are called"},
		"one that is none":   {"gone", "", "the team has no file"},
		"one that leads out": {"k/4", "", `".." is not a valid file name here`},
	} {
		server, to := listing(t), t.TempDir()
		d := clitest.New(t)
		d.SignedIn(t, server.URL, line.Grant{Token: "oat_1"})
		code := d.Type(&Commands{}, "", "files", "download", tt.file, "--to", to)
		entries, err := os.ReadDir(to)
		there := ""
		if len(entries) > 0 {
			there = entries[0].Name()
		}
		if (code == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) || err != nil || there != tt.there || len(entries) > 1 {
			t.Errorf("%s: %d, told %q, there are %v, %v", name, code, d.Errors, entries, err)
		}
		if want := filepath.Join(to, tt.there) + "\n"; (d.Printed.String() == want) != (tt.tells == "") {
			t.Errorf("%s: printed %q", name, d.Printed)
		}
	}
}

// What was uploaded before one fails is said: nobody uploads it again.
func TestTheKeysOfUploadedFilesArePrinted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "bad.csv", "c.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("ax"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var sent []string
	server := clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.Contains(string(body), "bad.csv"):
			says(402, `{"success":false,"error":"no room","code":"plan_limit","requestId":"r"}`)(w)
		case r.URL.Path == "/api/files/presign":
			clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"url":"http://%s/put","key":"k/1","method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}}`, r.Host))
		case r.URL.Path == "/put":
			sent = append(sent, r.Header.Get("Content-Type")+" "+string(body))
		default:
			clitest.Answer(w, 200, clitest.Data(`[{"key":"k/1","name":"a.csv","source":"upload","size":2,"sha256":"`+sumOf("ax")+`"}]`))
		}
	})
	for name, tt := range map[string]struct {
		args   []string
		prints string
		tells  string
		sent   string
	}{
		"all":              {[]string{"a.csv", "c.csv"}, "k/1\nk/1\n", "", "text/csv ax,text/csv ax"},
		"of another type":  {[]string{"a.csv", "--content-type", "text/plain; x=y"}, "k/1\n", "", "text/plain ax"},
		"until one is not": {[]string{"a.csv", "bad.csv"}, "k/1\n", "bad.csv: no room (see millrace credits and millrace estimate)", "text/csv ax"},
		"none that is not": {[]string{"a.csv", "gone.csv"}, "", "gone.csv", ""},
	} {
		d := clitest.New(t)
		d.SignedIn(t, server, line.Grant{Token: "oat_1"})
		sent = nil
		args := []string{"files", "upload"}
		for _, arg := range tt.args {
			if strings.HasSuffix(arg, ".csv") {
				arg = filepath.Join(dir, arg)
			}
			args = append(args, arg)
		}
		code := d.Type(&Commands{}, "", args...)
		if (code == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) || strings.Join(sent, ",") != tt.sent {
			t.Errorf("%s: %d, printed %q, told %q, sent %q", name, code, d.Printed, d.Errors, sent)
		}
	}
}
