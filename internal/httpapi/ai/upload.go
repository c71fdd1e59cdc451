package ai

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

const (
	largestPDF  = 20 << 20
	largestText = 8 << 10             // of a field beside the file
	largestForm = largestPDF + 64<<10 // the fields and what holds them together
)

// UploadPaper answers POST /api/ai/upload.
func (a *API) UploadPaper(x *kernel.Exchange) (kernel.Answer, error) {
	u := &paperForm{}
	defer u.remove()
	if err := u.read(x, a.Scratch); err != nil {
		return kernel.Answer{}, err
	}
	owner := a.paperOwner(x)
	an, err := a.AI.Upload(x.Context(), owner, u.Upload)
	u.remove() // its text has been taken out, and waiting may be long
	return a.deliver(x, owner, an, err)
}

// paperForm is an upload on its way to a file of its own.
type paperForm struct {
	ai.Upload
	seen map[string]bool
}

func (u *paperForm) remove() {
	if u.Path != "" {
		_ = os.Remove(u.Path)
		u.Path = ""
	}
}

var errLargePDF = fault.TooLarge("a PDF may have at most %d MB", largestPDF>>20)

// read takes the form part by part, so that no upload is held in memory.
func (u *paperForm) read(x *kernel.Exchange, scratch string) error {
	if x.Request.ContentLength > largestForm {
		return errLargePDF
	}
	conn := http.NewResponseController(x.Writer)
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }() // past it, the server would take the client for gone
	x.Request.Body = http.MaxBytesReader(x.Writer, io.NopCloser(&kernel.IdleReader{Body: x.Request.Body, Conn: conn}), largestForm)
	form, err := x.Request.MultipartReader()
	if err != nil {
		return fault.Unsupported("send the PDF as multipart/form-data, in a field called file")
	}
	u.seen = map[string]bool{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = u.take(part, scratch)
		}
		if err != nil {
			return formFailure(err)
		}
	}
	if !u.seen["file"] {
		return fieldProblem("file", "is missing: attach a PDF")
	}
	return nil
}

func formFailure(err error) error {
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return errLargePDF
	}
	if _, foreseen := errors.AsType[*fault.Error](err); foreseen {
		return err
	}
	return fault.Invalid("the form is incomplete").WithCause(err)
}

func fieldProblem(field, message string) error {
	return fault.Problems([]fault.Detail{{Path: field, Message: message}}, "%s %s", field, message)
}

func (u *paperForm) take(part *multipart.Part, scratch string) error {
	name := part.FormName()
	if u.seen[name] {
		return fieldProblem(name, "appears twice")
	}
	u.seen[name] = true
	switch name {
	case "file":
		return u.keep(part, scratch)
	case "doi":
		return text(part, name, 300, &u.DOI)
	case "title":
		return text(part, name, 1000, &u.Title)
	}
	return fieldProblem(name, "is not a field of this request")
}

// text reads a short field.
func text(part io.Reader, name string, most int, into *string) error {
	value, err := io.ReadAll(io.LimitReader(part, largestText))
	if err != nil {
		return err
	}
	if n := utf8.RuneCount(value); n > most || !utf8.Valid(value) {
		return fieldProblem(name, "is too long, or not text")
	}
	*into = string(value)
	return nil
}

// keep writes the file down and refuses what is too large or no PDF.
func (u *paperForm) keep(part io.Reader, scratch string) error {
	f, err := os.CreateTemp(scratch, "upload-*.pdf")
	if err != nil {
		return err
	}
	defer f.Close()
	u.Path = f.Name()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(part, largestPDF+1))
	if err != nil {
		return err
	}
	if n > largestPDF {
		return errLargePDF
	}
	u.SHA256 = hex.EncodeToString(hash.Sum(nil))
	head := make([]byte, min(n, ai.PDFHead))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return ai.MustBePDF(head)
}
