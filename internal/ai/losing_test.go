package ai_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
)

var anybody = ai.Crowd{PerOwner: 9, PerAddress: 9}

// A server that was silent for too long finds its reading with another one: it
// stops, writes nothing, and nobody pays for a PDF.
func TestWhoHasLostAReadingWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		begun := make(chan struct{})
		b.world.text = func(ctx context.Context) (ai.Text, error) {
			close(begun)
			<-ctx.Done()
			return ai.Text{}, errors.Join(ctx.Err(), ai.ErrUnreadable)
		}
		slow := b.room(func(o *ai.Options) { o.Patience.Lease = 30 * time.Millisecond })
		a := b.ask(mill)
		stop := run(t, slow)
		<-begun
		now := b.clock.Now().Add(time.Hour)
		r, err := b.db.ClaimReading(t.Context(), "another", anybody, now, now.Add(time.Hour))
		if err != nil || r.Attempt != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		// The slow one gives up by itself: it has room for another paper.
		b.world.text = nil
		if got := b.ended(slow, b.ask(wheel)); got.Status != ai.Completed {
			t.Errorf("%+v", got)
		}
		stop()
		still, err := b.Analysis(t.Context(), b.ada, a.ID)
		if err != nil || still.Status != ai.Processing {
			t.Fatalf("the slow one has written %+v, %v", still, err)
		}
		if n := b.failedPDFs(); n != 0 {
			t.Errorf("the team has %d unreadable PDFs", n)
		}
		if err := b.db.EndReading(t.Context(), r, &ai.Result{Summary: "by another"}, nil, now); err != nil {
			t.Fatal(err)
		}
		if got := b.ended(b.Service, a); got.Result == nil || got.Result.Summary != "by another" {
			t.Errorf("%+v", got)
		}
	})
}

func TestAPaperThatTakesServersDownIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.ask(mill)
		for range 3 { // three servers died over it
			now := b.clock.Now()
			if _, err := b.db.ClaimReading(t.Context(), "dead", anybody, now, now); err != nil {
				t.Fatal(err)
			}
		}
		run(t, b.Service)
		a = b.ended(b.Service, a)
		if a.Failure == nil || a.Failure.Code != "interrupted" || a.Failure.Message != "the analysis was interrupted 3 times; try again" || b.world.texts() != 0 {
			t.Errorf("%+v after %d tries", a.Failure, b.world.texts())
		}
		if again := b.ask(mill); again.ID == a.ID {
			t.Error("it cannot be asked for again")
		}
	})
}

func TestAServerThatIsAloneTakesUpWhatItLeftBehind(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.ask(mill)
		now := b.clock.Now()
		if _, err := b.db.ClaimReading(t.Context(), "killed", anybody, now, now.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		alone := b.room(func(o *ai.Options) { o.Alone = true })
		run(t, alone)
		if a = b.ended(alone, a); a.Status != ai.Completed {
			t.Errorf("%+v", a)
		}
	})
}

// A full answer is good for thirty days, a lesser one for an hour, and whoever
// asks in that time pays nothing.
func TestHowLongAnAnswerIsGood(t *testing.T) {
	for name, tt := range map[string]struct {
		found ai.Found
		model ai.Model
		good  time.Duration
	}{
		"full":                  {ai.Found{}, nil, 30 * 24 * time.Hour},
		"a service was down":    {ai.Found{Lesser: true}, nil, time.Hour},
		"the model read it":     {ai.Found{}, model{}, 30 * 24 * time.Hour},
		"the model was in bed":  {ai.Found{}, model{err: errors.New("in bed")}, time.Hour},
		"a model, a service no": {ai.Found{Lesser: true}, model{}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				b.world.find = func(context.Context, doi.DOI) (ai.Found, error) { return tt.found, nil }
				b.Service = b.room(func(o *ai.Options) { o.Model = tt.model })
				a := b.ask(mill)
				stop := run(t, b.Service)
				if a = b.ended(b.Service, a); a.Status != ai.Completed {
					t.Fatalf("%+v", a)
				}
				stop()
				b.clock.Pass(tt.good - time.Minute)
				if again := b.ask(mill); again.ID != a.ID || b.charged() != b.today(a) {
					t.Errorf("too early: %+v, charged %d", again, b.charged())
				}
				b.clock.Pass(2 * time.Minute)
				if again := b.ask(mill); again.ID == a.ID || again.Status != ai.Queued {
					t.Errorf("too late: %+v", again)
				}
			})
		})
	}
}

// today is what an analysis costs on the day of the clock.
func (b *bench) today(a ai.Analysis) int {
	if ai.DayOf(a.CreatedAt).Equal(ai.DayOf(b.clock.Now())) {
		return 1
	}
	return 0
}

// model answers the same whatever it is asked.
type model struct{ err error }

func (m model) Name() string { return "m" }

func (m model) Read(context.Context, ai.Paper, []reader.Page) (reader.Reading, error) {
	return reader.Reading{Summary: "The model's."}, m.err
}

// silent is a model that never answers.
type silent struct{ model }

func (silent) Read(ctx context.Context, _ ai.Paper, _ []reader.Page) (reader.Reading, error) {
	<-ctx.Done()
	return reader.Reading{}, ctx.Err()
}

// A model that does not answer in its time leaves the paper to the built-in analyser.
func TestReadingGoesOnWithoutASilentModel(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.Service = b.room(func(o *ai.Options) { o.Model, o.Patience.Model = silent{}, time.Millisecond })
		a := b.ask(mill)
		run(t, b.Service)
		if a = b.ended(b.Service, a); a.Result == nil || !strings.Contains(fmt.Sprint(a.Result.Notes), "The model gave no usable answer") {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhatWasNotReadIsNoted(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.world.find = func(context.Context, doi.DOI) (ai.Found, error) {
			return ai.Found{Notes: []string{"OpenAlex did not answer."}}, nil
		}
		b.world.text = func(context.Context) (ai.Text, error) {
			return ai.Text{Pages: []reader.Page{{Number: 1, Text: "We ground grain."}, {Number: 2, Text: "And flour."}}, Of: 5}, nil
		}
		b.Service = b.room(func(o *ai.Options) { o.Model = model{err: errors.New("sk-secret")} })
		a := b.ask(mill)
		run(t, b.Service)
		a = b.ended(b.Service, a)
		want := "[OpenAlex did not answer. Only the first 2 of 5 pages were read. The model gave no usable answer; try again later for an analysis by the model.]"
		if a.Result == nil || a.Result.Paper.PageCount != 5 || fmt.Sprint(a.Result.Notes[:min(3, len(a.Result.Notes))]) != want {
			t.Errorf("%+v", a.Result)
		}
	})
}

// Papers that others read better do not answer for this reader.
func TestAnotherReaderReadsAnew(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		first := b.ask(mill)
		b.Service = b.room(func(o *ai.Options) { o.Model = model{} })
		second := b.ask(mill)
		if first.ID == second.ID {
			t.Error("the model's answer is the built-in analyser's")
		}
		run(t, b.Service)
		if got := b.ended(b.Service, second); got.Result.Summary != "The model's." {
			t.Errorf("%+v", got.Result)
		}
		newest, err := b.AnalysisOf(t.Context(), b.ada, "https://doi.org/"+mill)
		if err != nil || newest.ID != second.ID {
			t.Errorf("the newest is %s, %v", newest.ID, err)
		}
		if _, err := b.AnalysisOf(t.Context(), b.ada, "mills"); !fault.Is(err, fault.KindInvalid) {
			t.Error(err)
		}
	})
}

// What the services outside say of a paper is kept as ours is: no database refuses
// it, and it is not endless.
func TestWhatServicesSayIsCleaned(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.world.find = func(context.Context, doi.DOI) (ai.Found, error) {
			return ai.Found{Paper: ai.Paper{Title: "On\x00 Mills\xff" + strings.Repeat("!", 2000), Abstract: "\x00"}}, nil
		}
		a := b.ask(mill)
		run(t, b.Service)
		a = b.ended(b.Service, a)
		if a.Result == nil || !strings.HasPrefix(a.Title, "On Mills!") || utf8.RuneCountInString(a.Title) != 1000 || strings.Contains(a.Result.Paper.Abstract, "\x00") {
			t.Errorf("%+v", a)
		}
	})
}
