package papers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/safedial"
)

const largestCopy = 50 << 20 // bytes

// Text fetches the copies one after the other until one can be read.
func (l *Library) Text(ctx context.Context, p ai.Payer, copies []string) (ai.Text, error) {
	why := "this paper has no open copy that we may fetch"
	var unreadable error
	for _, address := range copies {
		text, err := l.copyText(ctx, p, address)
		if err == nil || ctx.Err() != nil {
			return text, err
		}
		if fault.Is(err, fault.KindUnavailable) || fault.Is(err, fault.KindLimited) { // the next copy fares no better
			return text, err
		}
		why = "the open copy of this paper " + reason(err)
		if errors.Is(err, ai.ErrUnreadable) {
			unreadable = err
		}
	}
	return ai.Text{}, closed(why).WithCause(unreadable)
}

// reason says what is wrong with a copy, without echoing what strangers sent.
func reason(err error) string {
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		return "cannot be read (" + e.Message + ")"
	}
	switch {
	case errors.Is(err, safedial.ErrPrivate):
		return "lies on a private network, from which this server fetches only with --fetch-allow-private"
	case errors.Is(err, errTooLarge):
		return "is too large"
	case errors.Is(err, context.DeadlineExceeded):
		return "did not arrive in time"
	}
	return "could not be fetched"
}

func (l *Library) copyText(ctx context.Context, p ai.Payer, address string) (ai.Text, error) {
	f, err := os.CreateTemp(l.Dir, "paper-*.pdf")
	if err != nil {
		return ai.Text{}, err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(l.fetch(ctx, address, f), f.Close()); err != nil {
		return ai.Text{}, err
	}
	return l.PDFText(ctx, p, f.Name())
}

var errTooLarge = errors.New("too large")

// fetch brings one copy. What is no PDF is noticed at its first bytes.
func (l *Library) fetch(ctx context.Context, address string, into io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, l.FetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if err := onlyWeb(req, nil); err != nil {
		return err
	}
	req.Header.Set("Accept", "application/pdf")
	req.Header.Set("User-Agent", l.userAgent())
	res, err := l.copies.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", res.StatusCode)
	}
	head := make([]byte, ai.PDFHead)
	n, err := io.ReadFull(res.Body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if err := ai.MustBePDF(head[:n]); err != nil {
		return err
	}
	if _, err := into.Write(head[:n]); err != nil {
		return err
	}
	size, err := io.Copy(into, io.LimitReader(res.Body, largestCopy-int64(n)+1))
	if err == nil && int64(n)+size > largestCopy {
		err = errTooLarge
	}
	return err
}

// onlyWeb follows few redirects, and only to the web.
func onlyWeb(to *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("redirected too often")
	}
	if to.URL.Scheme != "https" && to.URL.Scheme != "http" || to.URL.User != nil || to.URL.Host == "" {
		return errors.New("not an address of the web")
	}
	return nil
}
