package s3

import (
	"context"
	"errors"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/internal/domain/fault"
)

// foreseen gives the server's refusals their kind. No answer at all is a
// storage that is down, unless it was us who hung up.
func foreseen(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	refusal, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case !ok || refusal.StatusCode >= http.StatusInternalServerError:
		return fault.Unavailable("the object storage does not answer; try again later").WithCause(err)
	case refusal.Code == minio.NoSuchKey:
		return fault.NotFound("there is no such object").WithCause(err)
	case refusal.StatusCode == http.StatusPreconditionFailed, refusal.StatusCode == http.StatusConflict:
		return conflict().WithCause(err)
	default:
		return err
	}
}

func conflict() *fault.Error {
	return fault.Conflict("the object exists; objects are never overwritten")
}
