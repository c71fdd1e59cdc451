package runs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

// kept is the room with all that runs leave behind, on a real disk.
func (b *bench) kept() objects.Kept {
	b.t.Helper()
	d, err := disk.Open(b.t.Context(), filepath.Join(b.t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), b.clock.Now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = d.Close() })
	all := objects.Kept{Store: d, Presigner: d}
	verifier := b.verifier(all)
	b.Service = runs.NewService(runs.Options{
		Store: b.db, Details: b.db, Shards: b.db, Logs: b.db, Submit: b.db, Known: b.db, Sweeps: b.db, Kept: b.db, Objects: all, Verifier: verifier, Engine: b.work, Reports: []byte("a key for reports"),
		Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
	})
	return all
}

// verifier hashes until the test ends.
func (b *bench) verifier(of runs.Objects) *runs.Verifier {
	v := runs.NewVerifier(of, b.db)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = v.Run(ctx) })
	b.t.Cleanup(func() { stop(); running.Wait() })
	return v
}

// put keeps bytes, and says what is kept.
func (b *bench) put(all objects.Kept, key, text string) runs.Output {
	b.t.Helper()
	if err := all.Upload(b.t.Context(), key, bytes.NewReader([]byte(text)), int64(len(text))); err != nil {
		b.t.Fatal(err)
	}
	stored, err := all.StatOutput(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	return runs.Output{Key: key, Blob: key, Name: filepath.Base(key), ContentType: "text/plain", Size: stored.Size, Mark: stored.Mark, SHA256: hex.EncodeToString(sum[:])}
}

// carryOut has a worker take a run and end it.
func (b *bench) carryOut(id ids.Run, status lifecycle.Status, step runs.Step) {
	b.t.Helper()
	fence := b.claim(id)
	ending := runs.Ending{Status: status, Message: "it ended", Last: &step}
	if status == lifecycle.Failed {
		ending.Code = lifecycle.NodeFailedCode
	}
	if err := b.db.EndRun(b.t.Context(), id, fence, ending, b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// claim has a worker take whatever waits, and says by which fence it has a run.
func (b *bench) claim(id ids.Run) (fence int64) {
	b.t.Helper()
	now := b.clock.Now()
	c := admission.Claim{Owner: "here w", Host: "here", Total: credits.Size{VCPU: 1000, RAMGB: 4000}, Most: 100}
	claimed, err := b.db.ClaimRuns(b.t.Context(), c, now, now.Add(time.Hour))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range claimed.Runs {
		b.fences[r.ID] = r.Fence
	}
	if b.fences[id] == 0 {
		b.t.Fatalf("no worker gets %s", id)
	}
	return b.fences[id]
}
