package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/treecache"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/safedial"
)

// defect is what is wrong with an image. It completes "the image cannot be
// used: ".
type defect string

func (d defect) Error() string { return string(d) }

func defectf(format string, args ...any) error { return defect(fmt.Sprintf(format, args...)) }

// explain turns a failure into a sentence that says what to do. A machine without space
// is not the image's fault: such a failure has the code disk_full. Where the pull was ended
// to leave space to others it stays treecache.ErrNoSpace, and the run tries again later.
func (s *Store) explain(ctx context.Context, ref name.Reference, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fault.KindOf(err) != fault.KindInternal || panics.Is(err) {
		return err // it is one already, or ours
	}
	if errors.Is(err, treecache.ErrNoSpace) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		s.Log.Error("no space for an image", slog.String("image", ref.String()), slog.Any("error", err))
		return fault.Conflict("the image %s does not fit on the server's disk: ask its operator to make room", ref).WithCode("disk_full")
	}
	host := hostOf(ref)
	if bad, ok := errors.AsType[defect](err); ok {
		return unavailable("the image %s cannot be used: %s", ref, bad)
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answered(ref, host, answer)
	}
	if errors.Is(err, safedial.ErrPrivate) {
		return unavailable("%s is in a private network, where this server fetches no images: its operator can allow that with --fetch-allow-private", host)
	}
	if errors.Is(err, safedial.ErrSlow) {
		return unavailable("the image %s cannot be fetched from %s: %s; try again later, or use another registry", ref, host, safedial.ErrSlow)
	}
	if why, ok := network(err); ok {
		return unavailable("the image %s is not here, and no registry is reachable at %s (%s): check the name of the registry and the server's network; "+
			"an image that is here already needs no registry if it is given by digest (name@sha256:…), or was loaded (millrace admin bundle --load); without `image` a task uses the programs of the machine", ref, host, why)
	}
	if strings.Contains(err.Error(), "no child with platform") {
		return unavailable("%s has no image for %s: choose one that was built for it", ref, platform())
	}
	if !isLocal(err) {
		return unavailable("what %s sent for %s cannot be used: %s", host, ref, printable(err.Error()))
	}
	s.Log.Error("cannot make a root of an image", slog.String("image", ref.String()), slog.Any("error", err))
	return unavailable("the image %s cannot be unpacked on this server: its log says why", ref)
}

// answered explains what a registry said.
func answered(ref name.Reference, host string, e *transport.Error) error {
	said := fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if len(e.Errors) > 0 {
		said = printable(fmt.Sprintf("%s, %s: %s", said, e.Errors[0].Code, e.Errors[0].Message))
	}
	switch e.StatusCode {
	case http.StatusNotFound:
		return unavailable("%s has no image %s (it answered %s): check the name and the tag", host, ref, said)
	case http.StatusUnauthorized, http.StatusForbidden:
		return unavailable("%s does not hand out %s (it answered %s): check the name; if the image is private, the server's operator has to sign in to %s (docker login, or --image-auth-file)",
			host, ref, said, host)
	case http.StatusTooManyRequests:
		return unavailable("%s wants no more requests from this server for now (it answered %s): try again later, or have its operator sign in there (docker login, or --image-auth-file)", host, said)
	}
	return unavailable("%s did not hand out %s (it answered %s): try again later, or use another registry", host, ref, said)
}

// printable makes a stranger's words fit for a sentence.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// network is why somebody could not be reached, in short.
func network(err error) (why string, ok bool) {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return printable("looking up " + lookup.Name + ": " + lookup.Err), true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return printable(op.Err.Error()), true
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return printable(request.Err.Error()), true // certificates, and talk that is no HTTP
	}
	if transient(err) {
		return printable(err.Error()), true
	}
	return "", false
}
