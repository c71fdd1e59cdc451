package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

// form is how an address looks.
const form = "s3://bucket?endpoint=https://host:port&region=…, with &prefix=…, &access-key=… and &secret-key=… if needed, and &public-endpoint=https://host where clients reach it under another address"

// retries of a request that can be repeated; the waits between them grow to a
// second.
const retries = 4

// Open reads an address such as
// s3://bucket?endpoint=http://127.0.0.1:7070&region=us-east-1&prefix=millrace
// and looks whether the bucket is there. Without an endpoint it is Amazon's.
// Without access-key and secret-key, AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY are used. Buckets are addressed by path, except where
// the endpoint wants them in the host name. Clients are sent to the
// public-endpoint, where there is one: the same server by another way.
func Open(ctx context.Context, address string, now func() time.Time) (*Store, error) {
	a, err := parse(address)
	if err != nil {
		return nil, err
	}
	creds, err := a.credentials()
	if err != nil {
		return nil, err
	}
	client, err := a.client(a.endpoint, creds)
	if err != nil {
		return nil, err
	}
	public := client
	if a.public != nil {
		if public, err = a.client(a.public, creds); err != nil {
			return nil, err
		}
	}
	s := &Store{client: client, public: public, bucket: a.bucket, prefix: a.prefix, copied: copyPart, now: now}
	if _, err := s.List(ctx, "", "", 1); err != nil {
		return nil, a.explain(err)
	}
	return s, nil
}

func (a address) client(at *url.URL, creds *credentials.Credentials) (*minio.Core, error) {
	c, err := minio.NewCore(at.Host, &minio.Options{Creds: creds, Secure: at.Scheme == "https", Region: a.region, MaxRetries: retries})
	if err != nil {
		return nil, fmt.Errorf("the storage address: %w", err)
	}
	return c, nil
}

// address is a storage address, taken apart.
type address struct {
	bucket, region, prefix string
	endpoint               *url.URL
	public                 *url.URL // nil where it is the endpoint
	accessKey, secretKey   string
}

// parse never repeats the address in what it says: secrets may be in it.
func parse(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return address{}, fmt.Errorf("the storage address is not of the form %s", form)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return address{}, fmt.Errorf("the storage address is not of the form %s", form)
	}
	a := address{bucket: u.Host}
	endpoint, public := "https://s3.amazonaws.com", ""
	fields := map[string]*string{
		"endpoint": &endpoint, "region": &a.region, "prefix": &a.prefix,
		"access-key": &a.accessKey, "secret-key": &a.secretKey, "public-endpoint": &public,
	}
	for name, values := range q {
		field, ok := fields[name]
		if !ok || len(values) != 1 {
			return address{}, fmt.Errorf("the storage address has %q, and its form is %s", name, form)
		}
		*field = values[0]
	}
	return a.check(endpoint, public)
}

func (a address) check(endpoint, public string) (address, error) {
	var err error
	if a.endpoint, err = origin("endpoint", endpoint); err != nil {
		return address{}, err
	}
	if public != "" {
		if a.public, err = origin("public-endpoint", public); err != nil {
			return address{}, err
		}
		if a.region == "" { // it would be asked for there, and we may not reach it
			return address{}, errors.New("the storage address has a public-endpoint, and needs a region with it")
		}
	}
	if a.prefix = strings.Trim(a.prefix, "/"); a.prefix != "" {
		if err := objects.CheckKey(a.prefix); err != nil {
			return address{}, fmt.Errorf("the prefix in the storage address: %w", err)
		}
		a.prefix += "/"
	}
	return a, nil
}

func origin(name, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("the %s in the storage address is not of the form http(s)://host:port", name)
	}
	return u, nil
}

func (a address) credentials() (*credentials.Credentials, error) {
	if a.accessKey != "" && a.secretKey != "" {
		return credentials.NewStaticV4(a.accessKey, a.secretKey, ""), nil
	}
	if a.accessKey != "" || a.secretKey != "" {
		return nil, errors.New("the storage address has one of access-key and secret-key; it needs both or none")
	}
	creds := credentials.NewEnvAWS()
	value, err := creds.GetWithContext(nil)
	if err != nil {
		return nil, err
	}
	if value.SignerType.IsAnonymous() {
		return nil, errors.New("there are no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, " +
			"or add access-key and secret-key to the storage address")
	}
	return creds, nil
}

// explain says which part of the address to look at.
func (a address) explain(err error) error {
	if fault.Is(err, fault.KindUnavailable) {
		return fmt.Errorf("the S3 server at %s does not answer: %w", a.endpoint, errors.Unwrap(err))
	}
	refusal, ok := errors.AsType[minio.ErrorResponse](err)
	switch {
	case !ok:
		return err
	case refusal.Code == minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %q at %s; create it first: %w", a.bucket, a.endpoint, err)
	case refusal.StatusCode == http.StatusForbidden || refusal.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the S3 server at %s does not let us use the bucket %q with these credentials (%s): %w",
			a.endpoint, a.bucket, refusal.Code, err)
	default:
		return fmt.Errorf("the bucket %q at %s: %w", a.bucket, a.endpoint, err)
	}
}
