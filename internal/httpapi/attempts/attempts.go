// Package attempts is the HTTP that shims beside tasks speak, on a path of its
// own: it is no part of the API, and knows neither people nor teams.
package attempts

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// Prefix begins all paths.
const Prefix = "/attempts/"

type handler struct {
	service *attempts.Service
	log     *slog.Logger
}

// Handler answers below Prefix.
func Handler(s *attempts.Service, log *slog.Logger) http.Handler {
	h := handler{s, log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /attempts/{id}/begin", h.begin)
	mux.HandleFunc("POST /attempts/{id}/report", h.report)
	mux.HandleFunc("GET /attempts/{id}/inputs/{n}", h.input)
	mux.HandleFunc("PUT /attempts/{id}/outputs/{name}", h.output)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", kernel.RequestID(r))
		mux.ServeHTTP(w, r)
	})
}

// answerTime is how long what is no transfer may take.
const answerTime = 20 * time.Second

func (h handler) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	var b attempts.Begin
	if h.read(w, r, &b, 16<<10) {
		task, err := h.service.Begin(ctx, r.PathValue("id"), b)
		h.answer(w, r, task, err)
	}
}

func (h handler) report(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	// Nobody else has us read what may be large.
	if err := h.service.Check(ctx, r.PathValue("id"), session(r)); err != nil {
		h.answer(w, r, nil, err)
		return
	}
	var b attempts.Report
	if h.read(w, r, &b, attempts.MaxBody) {
		a, err := h.service.Report(ctx, r.PathValue("id"), session(r), b)
		h.answer(w, r, a, err)
	}
}

// transferTime bounds one file. The largest are hundreds of gigabytes.
const transferTime = 24 * time.Hour

func (h handler) input(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		h.answer(w, r, nil, fault.NotFound("an input has a number"))
		return
	}
	body, size, err := h.service.OpenInput(r.Context(), r.PathValue("id"), session(r), n)
	if err != nil {
		h.answer(w, r, nil, err)
		return
	}
	defer body.Close()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	_, _ = io.Copy(w, body) // one that is cut short is shorter than it says
}

func (h handler) output(w http.ResponseWriter, r *http.Request) {
	if err := h.service.Check(r.Context(), r.PathValue("id"), session(r)); err != nil {
		h.answer(w, r, nil, err)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(transferTime))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime))
	h.answer(w, r, struct{}{}, h.service.TakeOutput(r.Context(), r.PathValue("id"), session(r), r.PathValue("name"), r.Body, r.ContentLength))
}

func session(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func (h handler) read(w http.ResponseWriter, r *http.Request, into any, most int64) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(into)
	if err != nil {
		h.answer(w, r, nil, fault.Invalid("this is no message of a shim: %s", err))
	}
	return err == nil
}

// statuses tell a shim whether to try again: only what is not among them may pass.
var statuses = map[fault.Kind]int{
	fault.KindInvalid: http.StatusBadRequest, fault.KindUnauthenticated: http.StatusUnauthorized, fault.KindNotFound: http.StatusNotFound,
	fault.KindConflict: http.StatusConflict, fault.KindStale: http.StatusGone, fault.KindTooLarge: http.StatusRequestEntityTooLarge,
}

func (h handler) answer(w http.ResponseWriter, r *http.Request, body any, err error) {
	status := http.StatusOK
	if err != nil {
		if status = statuses[fault.KindOf(err)]; status == 0 {
			status = http.StatusServiceUnavailable
			h.log.WarnContext(r.Context(), "cannot answer the shim of an attempt", slog.String("attempt", r.PathValue("id")),
				slog.String("request_id", w.Header().Get("X-Request-Id")), slog.Any("error", err))
		}
		body = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(attempts.Answered, "yes")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
