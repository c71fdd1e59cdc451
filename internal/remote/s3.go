package remote

import (
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
)

// listPage is how many objects and folders a page has.
const listPage = 1000

// List gives a page of what is directly below a prefix.
func (c *Client) List(ctx context.Context, conn connections.Connection, secret connections.Credentials, prefix, cursor string) (connections.Listing, error) {
	l, err := c.list(ctx, conn, secret, prefix, cursor, listPage)
	return l, explain(conn, err)
}

func (c *Client) list(ctx context.Context, conn connections.Connection, secret connections.Credentials, prefix, cursor string, most int) (l connections.Listing, err error) {
	client, err := c.bucket(ctx, conn, secret)
	if err != nil {
		return l, err
	}
	page, err := client.ListObjectsV2(conn.Bucket, prefix, "", cursor, "/", most)
	if err != nil {
		return l, err
	}
	for _, folder := range page.CommonPrefixes {
		l.Folders = append(l.Folders, folder.Prefix)
	}
	for _, o := range page.Contents {
		if o.Key == prefix { // the mark that some tools leave for a folder
			continue
		}
		l.Objects = append(l.Objects, connections.Object{
			URL: Address(conn.Bucket, o.Key), Name: path.Base(o.Key), Size: o.Size, ETag: strings.Trim(o.ETag, `"`), ModifiedAt: o.LastModified,
		})
	}
	if page.IsTruncated {
		l.Next = page.NextContinuationToken
	}
	return l, nil
}

// Address is how an object is written in a run's inputs.
func Address(bucket, key string) string { return "s3://" + bucket + "/" + key }

// bucket is a client for one call. Without keys it is nobody: neither variables
// of the environment nor a role of the machine are looked for.
func (c *Client) bucket(ctx context.Context, conn connections.Connection, secret connections.Credentials) (*minio.Core, error) {
	endpoint, err := url.Parse(conn.Endpoint)
	if err != nil {
		return nil, fault.Invalid("the endpoint of %s is no address", conn.Name)
	}
	creds := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if secret.SecretKey != "" {
		creds = credentials.NewStaticV4(secret.AccessKey, secret.SecretKey, "")
	}
	region, lookup := conn.Region, minio.BucketLookupPath
	if amazon(endpoint.Host) {
		lookup = minio.BucketLookupAuto
	} else if region == "" {
		region = "us-east-1" // what servers expect who have no regions
	}
	return minio.NewCore(endpoint.Host, &minio.Options{
		Creds: creds, Secure: endpoint.Scheme == "https", Region: region, BucketLookup: lookup, MaxRetries: 2,
		Transport: guarded{ctx, c.transport, func(host string) bool {
			return sameHost(host, endpoint.Host) || sameHost(host, conn.Bucket+"."+endpoint.Host) || amazon(endpoint.Host) && amazon(host)
		}},
	})
}

// amazon reports whether a host is one of Amazon's, which sends a bucket's
// requests to the host of its region.
func amazon(host string) bool {
	return strings.HasSuffix(strings.ToLower(host), ".amazonaws.com") || strings.HasSuffix(strings.ToLower(host), ".amazonaws.com:443")
}
