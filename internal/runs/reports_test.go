package runs_test

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// addressed are the two parts of a signed address: the token, and the name.
func addressed(t *testing.T, address string) (token, name string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 3)
	if len(parts) != 3 {
		t.Fatalf("%q", address)
	}
	return parts[1], parts[2]
}

// The address of a page or a folder opens exactly that, while it is what it was.
func TestASignedAddressOpensOneOutputForAWhile(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx := t.Context()
		r := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","outputs":{"page":{"path":"p"},"folder":{"path":"f","directory":true},"text":{"path":"t"}}}]}`))
		place := fmt.Sprintf("teams/%s/runs/%s/", b.owner.Team, r.ID)
		page, text := b.put(all, place+"page/my report.html", "<p>"), b.put(all, place+"text/t.txt", "x")
		page.ContentType = "text/html; charset=utf-8"
		m, err := folders.New([]folders.Entry{{Path: "x", Size: 1, SHA256: folders.Hash([]byte("x"))}})
		if err != nil {
			t.Fatal(err)
		}
		folder, data := b.put(all, place+"folder/f.html", string(m.Text())), b.put(all, place+"data/f", "x")
		folder.Folder = &runs.Folder{Data: data.Key, Mark: data.Mark, Bytes: 1, Files: 1, SHA256: data.SHA256}
		page.Node, page.Port, text.Node, text.Port, folder.Node, folder.Port = "a", "page", "a", "text", "a", "folder"
		b.carryOut(r.ID, lifecycle.Completed, runs.Step{Outputs: []runs.Output{page, text, folder}})
		list, _, err := b.Outputs(ctx, b.owner, r.ID, runs.OutputQuery{Base: "https://here/"})
		if err != nil || len(list) != 3 {
			t.Fatalf("%d outputs, %v", len(list), err)
		}
		byPort := map[string]runs.Listed{}
		for _, o := range list {
			byPort[o.Port] = o
		}
		if byPort["text"].ReportURL+byPort["text"].Archive+byPort["page"].Archive+byPort["folder"].ReportURL != "" {
			t.Error("what is no page opens as one, or what is no folder as an archive")
		}
		opened, name := addressed(t, byPort["page"].ReportURL)
		body, size, err := b.Report(ctx, opened, name)
		if err != nil || size != 3 || name != "my report.html" {
			t.Fatalf("%q of %d, %v", name, size, err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != "<p>" || body.Close() != nil {
			t.Errorf("%q, %v", got, err)
		}
		archived, _ := addressed(t, byPort["folder"].Archive)
		if o, err := b.ArchivedFolder(ctx, archived); err != nil || o.Folder == nil || o.Folder.Data != data.Key || o.SHA256 != folder.SHA256 {
			t.Errorf("%+v, %v", o, err)
		}
		_, _, err = b.Report(ctx, opened, "other.html")
		storetest.Refused(t, "another file", err, fault.KindNotFound)
		_, _, err = b.Report(ctx, archived, "f.html")
		storetest.Refused(t, "a folder as a page", err, fault.KindForbidden)
		_, err = b.ArchivedFolder(ctx, opened)
		storetest.Refused(t, "a page as a folder", err, fault.KindForbidden)
		for what, token := range map[string]string{"nothing": "", "half": opened[:len(opened)/2], "a seal of another": strings.Split(opened, ".")[0] + "." + strings.Split(archived, ".")[1]} {
			_, _, err = b.Report(ctx, token, name)
			storetest.Refused(t, what, err, fault.KindForbidden)
			_, err = b.ArchivedFolder(ctx, token)
			storetest.Refused(t, what+" as a folder", err, fault.KindForbidden)
		}
		for _, gone := range []string{"page/", "data/"} {
			if _, err := all.DeletePrefix(ctx, place+gone); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err = b.Report(ctx, opened, name)
		storetest.Refused(t, "a page that is gone", err, fault.KindNotFound)
		_, err = b.ArchivedFolder(ctx, archived)
		storetest.Refused(t, "a folder whose bytes are gone", err, fault.KindNotFound)
		_, _, err = b.Outputs(ctx, b.owner, r.ID, runs.OutputQuery{})
		storetest.Refused(t, "outputs of which some are gone", err, fault.KindConflict)
		if left, _, err := b.Outputs(ctx, b.owner, r.ID, runs.OutputQuery{All: true}); err != nil || len(left) != 1 {
			t.Errorf("%d are left, %v", len(left), err)
		}
		b.clock.Pass(15 * time.Minute)
		_, err = b.ArchivedFolder(ctx, archived)
		storetest.Refused(t, "a quarter of an hour later", err, fault.KindForbidden)
	})
}

func TestWhoReadsWhatAFailedAttemptLeft(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx := t.Context()
		r := b.start(b.owner, b.workflow(simple))
		b.carryOut(r.ID, lifecycle.Failed, runs.Step{Attempts: []runs.Attempt{{Node: "a", Number: 1, Fence: "f", State: runs.AttemptFailed, StartedAt: b.clock.Now()}}})
		key := runs.AttemptKey{Run: r.ID, Node: "a", Attempt: 1}
		left := b.put(all, fmt.Sprintf("teams/%s/failed/x", b.owner.Team), "half")
		kept := runs.KeptAttempt{AttemptKey: key, Team: b.owner.Team, Bytes: 4, Files: 1, KeptAt: b.clock.Now(), ExpiresAt: b.clock.Now().Add(time.Hour)}
		files := []runs.KeptFile{{Path: "out/half.html", Kind: runs.KeptFileKind, Size: 4, Object: left.Key}, {Path: "huge", Kind: runs.KeptFileKind, Size: 1 << 40}, {Path: "pipe", Kind: runs.KeptOtherKind}}
		if err := b.db.KeepAttempt(ctx, kept, files); err != nil {
			t.Fatal(err)
		}
		list, err := b.KeptFiles(ctx, b.owner, key, "https://here")
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, f := range list {
			if has := f.URL != ""; has != (f.Path == "out/half.html") || has && (strings.Contains(f.URL, "/reports/") || f.ExpiresAt.IsZero()) {
				t.Errorf("%s is at %q", f.Path, f.URL)
			}
		}
		viewer, mia := storetest.Join(t, b.db, b.owner, "bob", access.Viewer), storetest.Owner(t, b.db, "mia")
		for name, tt := range map[string]struct {
			as   access.Caller
			key  runs.AttemptKey
			kind fault.Kind
		}{
			"a member":        {storetest.Join(t, b.db, b.owner, "eve", access.Member), key, ""},
			"a viewer":        {viewer, key, fault.KindForbidden},
			"another team":    {mia, key, fault.KindNotFound},
			"another attempt": {b.owner, runs.AttemptKey{Run: r.ID, Node: "a", Attempt: 2}, fault.KindNotFound},
			"another shard":   {b.owner, runs.AttemptKey{Run: r.ID, Node: "a", Shard: 1, Attempt: 1}, fault.KindNotFound},
			"another run":     {b.owner, runs.AttemptKey{Run: "run_none", Node: "a", Attempt: 1}, fault.KindNotFound},
		} {
			_, err := b.KeptFiles(ctx, tt.as, tt.key, "")
			storetest.Refused(t, name, err, tt.kind)
		}
	})
}
