package remote

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// reportAll reports every second, and when there is a reason to.
func (r *runner) reportAll(ctx context.Context) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		ended := false
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.now:
		case <-r.signals:
			ended = true
		}
		err := r.report(ctx)
		r.mu.Lock()
		if ended && !r.told.Stop {
			r.preempt()
		}
		if isRefused(err) { // the attempt is not ours any more
			r.obey(attempts.Answer{Stop: true})
		}
		r.mu.Unlock()
	}
}

func (r *runner) reportNow() {
	select {
	case r.now <- struct{}{}:
	default:
	}
}

// report tells how it goes, and does what the answer says. It is called by one
// goroutine at a time.
func (r *runner) report(ctx context.Context) error {
	r.mu.Lock()
	report := attempts.Report{Running: r.running, Log: r.logPiece()}
	r.state.Progress = r.progress()
	report.State, _ = json.Marshal(r.state)
	r.mu.Unlock()
	a, err := r.client.report(ctx, report)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if report.Log != nil && len(report.Log.Text) == attempts.MaxLog && a.LogSize > report.Log.Offset {
		r.reportNow()
	}
	r.logged = a.LogSize
	if a.RunFence != 0 && a.RunFence < r.told.RunFence {
		return nil // another server has taken the run over since
	}
	a.RunFence = max(a.RunFence, r.told.RunFence)
	r.told = a
	r.obey(a)
	return nil
}

// preempt ends the attempt because the machine wants it to, and not the server. The
// lock is held.
func (r *runner) preempt() {
	r.preempted = true
	if r.alone != nil {
		r.alone.Preempt()
	} else if r.unwanted != nil {
		r.unwanted()
	}
}

// obey does what a server says. The lock is held.
func (r *runner) obey(a attempts.Answer) {
	if r.alone == nil {
		if a.Stop && r.unwanted != nil {
			r.unwanted()
		}
		return
	}
	r.alone.Renewed(a.Renewals)
	if a.Stop {
		r.alone.Stop(a.Grace)
	}
}

// ProgressFile is where a command may say how far it has come, among its temporary
// files.
const ProgressFile = "millrace-progress"

func (r *runner) progress() string {
	f, err := outputs.Open(filepath.Join(r.task.Launch.Folder, shim.TempFolder), ProgressFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, 64)
	n, _ := io.ReadFull(f, text)
	return string(text[:n])
}
