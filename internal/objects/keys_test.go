package objects_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/runs"
)

func TestKeysAreCleanPathsOnEveryStore(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for key, good := range map[string]bool{
		"a": true, "teams/t/uploads/f/ä b.csv": true, ".hidden": true, "a..b": true, "...": true, long: true, long + "/" + long + "/" + long + "/" + long[:232]: true,
		"": false, "/a": false, "a/": false, "a//b": false, ".": false, "..": false, "a/../b": false, "a/./b": false, `a\b`: false, "a\x00": false, "a\nb": false,
		"a\u0085b": false, "\xff": false, long + "x": false, long + "/" + long + "/" + long + "/" + long[:233]: false,
	} {
		if err := objects.CheckKey(key); (err == nil) != good || err != nil && !fault.Is(err, fault.KindInvalid) {
			t.Errorf("%q (%d bytes): %v", key, len(key), err)
		}
		if err := objects.CheckPrefix(key + "/"); (err == nil) != good {
			t.Errorf("%q as a prefix: %v", key, err)
		}
	}
	if err := objects.CheckPrefix("a"); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("a prefix without a slash: %v", err)
	}
}

func TestWhatIsListedAndSignedIsChecked(t *testing.T) {
	t.Parallel()
	upload := func(key, kind string, size int64) error {
		return objects.CheckUpload(objects.Upload{Key: key, ContentType: kind, Size: size})
	}
	download := func(key, kind string) error {
		return objects.CheckDownload(objects.Download{Key: key, ContentType: kind})
	}
	for name, tt := range map[string]struct {
		err  error
		good bool
	}{
		"one":                    {objects.CheckPage("", "", 1), true},
		"a full page":            {objects.CheckPage("a/", "a/b", objects.MaxPage), true},
		"none":                   {objects.CheckPage("", "", 0), false},
		"too many":               {objects.CheckPage("", "", objects.MaxPage+1), false},
		"after no key":           {objects.CheckPage("", "a/", 1), false},
		"below no prefix":        {objects.CheckPage("a", "", 1), false},
		"below the top":          {objects.CheckPage("/", "", 1), false},
		"an upload":              {upload("a", "text/csv", 0), true},
		"with a parameter":       {upload("a", `text/csv; charset="utf-8"`, 1), true},
		"without a length":       {upload("a", "text/csv", -1), false},
		"to no key":              {upload("", "text/csv", 1), false},
		"of no type":             {upload("a", "", 1), false},
		"of half a type":         {upload("a", "text", 1), false},
		"that ends a header":     {upload("a", "text/csv\r\nX: y", 1), false},
		"of letters of others":   {upload("a", "text/csv; a=ä", 1), false},
		"a download":             {download("a", "application/pdf"), true},
		"of nothing":             {download("a/", "application/pdf"), false},
		"a download of no type":  {download("a", "pdf"), false},
		"a type of two lines":    {download("a", "a/b\n"), false},
		"a type that only tears": {download("a", "a/b; =x"), false},
	} {
		if (tt.err == nil) != tt.good || tt.err != nil && !fault.Is(tt.err, fault.KindInvalid) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}

func TestWhoeverIsStoppedReadsNoMore(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	m := objects.Count(ctx, strings.NewReader("hello"), 5)
	if n, err := m.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	stop()
	if _, err := m.Read(make([]byte, 3)); !errors.Is(err, context.Canceled) || !errors.Is(m.Err(), context.Canceled) {
		t.Errorf("%v, %v", err, m.Err())
	}
}

// The rooms see a store in their own words.
func TestAStoreInTheWordsOfTheRooms(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keeper, err := disk.Open(t.Context(), t.TempDir(), disk.NewSigner([]byte("key")), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	ctx, k := t.Context(), objects.Kept{Store: keeper, Presigner: keeper}
	const key = "teams/t/a.csv"
	if err := k.Upload(ctx, key, strings.NewReader("hello"), 5); err != nil {
		t.Fatal(err)
	}
	if err := k.Upload(ctx, key, strings.NewReader("other"), 5); !fault.Is(err, fault.KindConflict) {
		t.Errorf("a second time: %v", err)
	}
	if n, err := k.Size(ctx, key); err != nil || n != 5 {
		t.Errorf("%d bytes, %v", n, err)
	}
	b, err := k.Bytes().Objects.Stat(ctx, key)
	if err != nil || b.Size != 5 || b.Mark == "" {
		t.Errorf("%+v, %v", b, err)
	}
	out, err := k.StatOutput(ctx, key)
	if err != nil || out.Size != 5 || out.Mark != b.Mark {
		t.Errorf("%+v, %v", out, err)
	}
	keys, since, err := k.Bytes().Sweep.Keys(ctx, "teams/", "", 10)
	if err != nil || len(keys) != 1 || keys[0] != key || len(since) != 1 || since[0].IsZero() {
		t.Errorf("%v, %v, %v", keys, since, err)
	}
	url, err := k.PresignOutput(ctx, runs.Output{Blob: key, Name: "ä.csv", ContentType: "text/csv"}, now.Add(time.Hour), "http://a")
	if err != nil || !strings.HasPrefix(url, "http://a/") {
		t.Errorf("%s, %v", url, err)
	}
	if _, err := k.Bytes().Presigner.PresignGet(ctx, files.Download{Key: "..", ContentType: "text/csv"}); !fault.Is(err, fault.KindInvalid) {
		t.Errorf("an address of nothing: %v", err)
	}
	if _, err := k.Bytes().Presigner.Arrived(ctx, "teams/t/none"); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("what has not arrived: %v", err)
	}
	if _, err := k.Size(ctx, "teams/t/none"); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("the size of nothing: %v", err)
	}
}
