package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

// What a server answers decides whether a caller tries again, gives up, or reads what
// somebody else has put there.
func TestARefusalHasItsKind(t *testing.T) {
	t.Parallel()
	refusal := func(status int, code string) error { return minio.ErrorResponse{StatusCode: status, Code: code} }
	const none = fault.KindInternal
	for name, tt := range map[string]struct {
		err  error
		kind fault.Kind
		gone fault.Kind
	}{
		"no answer":              {errors.New("connection refused"), fault.KindUnavailable, fault.KindUnavailable},
		"an answer that was cut": {io.ErrUnexpectedEOF, fault.KindUnavailable, fault.KindUnavailable},
		"a server in trouble":    {refusal(500, "InternalError"), fault.KindUnavailable, fault.KindUnavailable},
		"a busy server":          {refusal(503, "SlowDown"), fault.KindUnavailable, fault.KindUnavailable},
		"no such object":         {refusal(404, minio.NoSuchKey), fault.KindNotFound, fault.KindNotFound},
		"no such upload":         {refusal(404, minio.NoSuchUpload), none, fault.KindNotFound},
		"the key is taken":       {refusal(412, "PreconditionFailed"), fault.KindConflict, fault.KindConflict},
		"it is being taken":      {refusal(409, "ConditionalRequestConflict"), fault.KindConflict, fault.KindConflict},
		"no bucket":              {refusal(404, minio.NoSuchBucket), none, none},
		"not allowed":            {refusal(403, "AccessDenied"), none, none},
		"wrapped":                {fmt.Errorf("listing: %w", refusal(404, minio.NoSuchKey)), fault.KindNotFound, fault.KindNotFound},
		"we hung up":             {fmt.Errorf("get: %w", context.Canceled), none, none},
		"our time was over":      {context.DeadlineExceeded, none, none},
	} {
		if got := fault.KindOf(foreseen(tt.err)); got != tt.kind {
			t.Errorf("%s: %s", name, got)
		}
		if got := fault.KindOf(gone(tt.err)); got != tt.gone {
			t.Errorf("%s of an upload: %s", name, got)
		}
	}
	if foreseen(nil) != nil || gone(nil) != nil {
		t.Error("nothing is a fault")
	}
}

// between is a bucket behind a proxy that answers some requests itself, beside the same
// bucket without it.
func between(t *testing.T, answers func(w http.ResponseWriter, r *http.Request) bool) (faulty, direct *Store) {
	t.Helper()
	direct = fresh(t)
	address := server(t)
	target, err := url.Parse(address.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers(w, r) {
			pass.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(proxy.Close)
	faulty, err = Open(t.Context(), with(with(address, "prefix", strings.TrimSuffix(direct.prefix, "/")), "endpoint", proxy.URL).String(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return faulty, direct
}

func refuse(w http.ResponseWriter) bool {
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
	return true
}

func put(t *testing.T, s *Store, key, text string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, "text/csv", strings.NewReader(text), int64(len(text))); err != nil {
		t.Fatal(err)
	}
}

// A copy that fails on the way leaves neither an object nor parts of one.
func TestACopyThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*http.Request) bool{
		"with a part":    func(r *http.Request) bool { return r.URL.Query().Has("partNumber") },
		"at the end":     func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") },
		"at the begin":   func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploads") },
		"before it even": func(r *http.Request) bool { return r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/to") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faulty, direct := between(t, func(w http.ResponseWriter, r *http.Request) bool { return fails(r) && refuse(w) })
			put(t, direct, "a/from", "text")
			err := faulty.Link(t.Context(), "a/from", "a/to")
			if err == nil || fault.Is(err, fault.KindConflict) || fault.Is(err, fault.KindNotFound) {
				t.Errorf("it says %v", err)
			}
			if _, err := direct.Stat(t.Context(), "a/to"); !fault.Is(err, fault.KindNotFound) {
				t.Errorf("an object is there: %v", err)
			}
			if n, err := direct.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 0 {
				t.Errorf("%d uploads are left, %v", n, err)
			}
		})
	}
}

// Bytes that stop coming are never taken for the end of the object.
func TestAnObjectThatIsCutOffIsNotWhole(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 4096)
	faulty, direct := between(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/k") {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, text[:len(text)/2])
		panic(http.ErrAbortHandler)
	})
	put(t, direct, "a/k", text)
	for name, length := range map[string]int64{"the whole": -1, "a range": int64(len(text)) - 1} {
		r, err := faulty.Open(t.Context(), "a/k", 0, length)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err == nil || len(got) > len(text)/2 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An answer that was lost does not make the object another's: who asks again finds it.
func TestAnUploadIsSettledAgainAfterALostAnswer(t *testing.T) {
	t.Parallel()
	var once sync.Once
	faulty, direct := between(t, func(w http.ResponseWriter, r *http.Request) (answered bool) {
		if r.Method == http.MethodDelete { // what was sent is still there afterwards
			once.Do(func() { answered = refuse(w) })
		}
		return answered
	})
	address, err := direct.PresignPut(t.Context(), objects.Upload{Key: "a/k", ContentType: "text/csv", Size: 5, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	send(t, address, "first")
	first, err := faulty.Arrived(t.Context(), "a/k")
	if err != nil || first.Size != 5 {
		t.Fatalf("%+v, %v", first, err)
	}
	send(t, address, "other")
	again, err := faulty.Arrived(t.Context(), "a/k")
	if err != nil || again.Mark != first.Mark {
		t.Errorf("%+v, then %+v, %v", first, again, err)
	}
}

// Of those who link to one key at the same time, one wins, and the others are told.
func TestOneOfManyLinksWins(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	const writers = 6
	for i := range writers {
		put(t, s, fmt.Sprintf("from/%d", i), strings.Repeat("x", i+1))
	}
	winners := make([]bool, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			err := s.Link(t.Context(), fmt.Sprintf("from/%d", i), "to/k")
			if winners[i] = err == nil; err != nil && !fault.Is(err, fault.KindConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	o, err := s.Stat(t.Context(), "to/k")
	if err != nil {
		t.Fatal(err)
	}
	for i, won := range winners {
		if won != (o.Size == int64(i+1)) {
			t.Errorf("of %v, who put %d bytes has made it", winners, o.Size)
		}
	}
}

// Calling off an upload leaves the one whose key only begins like it.
func TestCallingOffAnUploadLeavesItsNeighbours(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	const key = "teams/a/by-parts/f/reads.fq"
	ids := map[string]string{}
	for _, name := range []string{key, key + ".gz"} {
		id, err := s.BeginParts(t.Context(), name, "text/csv")
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = id
	}
	second, err := s.BeginParts(t.Context(), key, "text/csv") // by a server that died
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AbortParts(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{ids[key], second} {
		if _, err := s.ArrivedParts(t.Context(), key, id); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("what was called off: %v", err)
		}
	}
	if _, err := s.ArrivedParts(t.Context(), key+".gz", ids[key+".gz"]); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
}

// Every way into the bucket holds keys to the same rules.
func TestAKeyThatMakesNoSenseReachesNoBucket(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ctx, soon := t.Context(), time.Now().Add(time.Minute)
	for name, key := range map[string]string{"empty": "", "leaving": "../a", "absolute": "/a", "too long": strings.Repeat("k/", maxName/2)} {
		for what, err := range map[string]error{
			"Put":          second(s.Put(ctx, key, "text/csv", strings.NewReader(""), 0)),
			"Stat":         second(s.Stat(ctx, key)),
			"Open":         second(s.Open(ctx, key, 0, -1)),
			"Delete":       s.Delete(ctx, key),
			"Link from":    s.Link(ctx, key, "a/k"),
			"Link to":      s.Link(ctx, "a/k", key),
			"Arrived":      second(s.Arrived(ctx, key)),
			"PresignPut":   second(s.PresignPut(ctx, objects.Upload{Key: key, ContentType: "text/csv", Expires: soon})),
			"PresignGet":   second(s.PresignGet(ctx, objects.Download{Key: key, ContentType: "text/csv", Expires: soon})),
			"BeginParts":   second(s.BeginParts(ctx, key, "text/csv")),
			"PresignPart":  second(s.PresignPart(ctx, files.PartAddress{Key: key, Number: 1, Expires: soon})),
			"ArrivedParts": second(s.ArrivedParts(ctx, key, "id")),
			"JoinParts":    second(s.JoinParts(ctx, key, "id", nil)),
			"AbortParts":   s.AbortParts(ctx, key),
		} {
			if !fault.Is(err, fault.KindInvalid) {
				t.Errorf("%s of a key that is %s: %v", what, name, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
