package remote

import (
	"context"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/offline"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// Connections opens a team's connections.
type Connections interface {
	OpenConnection(ctx context.Context, team ids.Team, id ids.Connection) (connections.Connection, connections.Credentials, error)
}

// Inputs are what runs take from elsewhere.
type Inputs struct {
	client *Client
	open   Connections
	plain  bool // addresses without TLS are allowed

	Loaded offline.Folder // has what is at addresses that nobody is asked for
}

// NewInputs makes it. Addresses without TLS are for installations that allow private
// networks.
func NewInputs(c *Client, open Connections, plainHTTP bool) *Inputs {
	return &Inputs{client: c, open: open, plain: plainHTTP}
}

// anonymous is how an address without a connection is reached: as nobody. Buckets
// are then Amazon's.
func anonymous(a addresses.Address) connections.Connection {
	if bucket, _, ok := a.S3(); ok {
		return connections.Connection{Type: connections.S3, Settings: connections.Settings{Endpoint: connections.Amazon, Bucket: bucket}}
	}
	c := connections.Connection{Type: connections.HTTPS}
	if u, err := url.Parse(a.URL); err == nil {
		c.Host = u.Host
	}
	return c
}

// reach is the connection of an address with its credentials, if the address is one
// of its own.
func (i *Inputs) reach(ctx context.Context, team ids.Team, a addresses.Address) (c connections.Connection, secret connections.Credentials, err error) {
	if strings.HasPrefix(a.URL, "http://") && !i.plain {
		return c, secret, fault.Invalid("the address must begin with https, because what is sent without it can be changed on the way: the server's operator can allow http with --fetch-allow-private")
	}
	if a.Connection == "" {
		return anonymous(a), secret, nil
	}
	if c, secret, err = i.open.OpenConnection(ctx, team, a.Connection); err != nil {
		return c, secret, err
	}
	bucket, key, s3 := a.S3()
	switch {
	case s3 && (c.Type != connections.S3 || c.Bucket != bucket):
		return c, secret, fault.Invalid("the connection %s is not for the bucket %s", c.Name, bucket)
	case s3:
		prefix, _ := addresses.Listing(key)
		return c, secret, c.Holds(prefix)
	}
	u, err := url.Parse(a.URL)
	if err != nil || c.Type != connections.HTTPS || u.Scheme != "https" || !sameHost(u.Host, c.Host) {
		return c, secret, fault.Invalid("the connection %s is not for this host", c.Name)
	}
	return c, secret, nil
}

// Fits is nil where a team may use the connections of addresses for them.
func (i *Inputs) Fits(ctx context.Context, team ids.Team, list []addresses.Address) error {
	for _, a := range list {
		if _, loaded, err := i.loaded(a); err != nil {
			return err
		} else if loaded {
			continue
		}
		if _, _, err := i.reach(ctx, team, a); err != nil {
			return err
		}
	}
	return nil
}

// atOnce is how many addresses are looked at at the same time.
const atOnce = 16

// Look finds what is at addresses of a team's now: the objects of each, or why
// there are none. Those that are patterns mean all that match.
func (i *Inputs) Look(ctx context.Context, team ids.Team, list []addresses.Address, pattern func(int) bool) (found [][]addresses.Object, failed []error) {
	found, failed = make([][]addresses.Object, len(list)), make([]error, len(list))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, group := range folders(list, pattern) {
		g.Go(func() error {
			err := panics.Catch(func() error {
				i.lookIn(ctx, team, list, group, pattern, found, failed)
				return nil
			})
			if err != nil {
				for _, n := range group {
					failed[n] = err
				}
			}
			return nil
		})
	}
	_ = g.Wait()
	return found, failed
}

// listFrom is how many objects of one folder are looked at by listing the folder.
const listFrom = 20

// folders are the addresses, by their places in the list, that are looked at in one
// go: many of one folder together, the others each by itself.
func folders(list []addresses.Address, pattern func(int) bool) (groups [][]int) {
	type folder struct {
		connection  ids.Connection
		bucket, dir string
	}
	together := map[folder][]int{}
	for n, a := range list {
		bucket, key, s3 := a.S3()
		if !s3 || pattern(n) || addresses.IsFolder(a.URL) {
			groups = append(groups, []int{n})
			continue
		}
		f := folder{a.Connection, bucket, key[:strings.LastIndexByte(key, '/')+1]}
		together[f] = append(together[f], n)
	}
	for _, group := range together {
		if len(group) >= listFrom {
			groups = append(groups, group)
			continue
		}
		for _, n := range group {
			groups = append(groups, []int{n})
		}
	}
	return groups
}

func (i *Inputs) lookIn(ctx context.Context, team ids.Team, list []addresses.Address, group []int, pattern func(int) bool, found [][]addresses.Object, failed []error) {
	group = slices.DeleteFunc(group, func(n int) bool {
		o, loaded, err := i.loaded(list[n])
		if loaded {
			found[n] = []addresses.Object{o}
		}
		failed[n] = err
		return loaded || err != nil
	})
	if len(group) == 0 {
		return
	}
	first := list[group[0]]
	c, secret, err := i.reach(ctx, team, first)
	for _, n := range group {
		_, key, s3 := list[n].S3()
		if err == nil && s3 {
			prefix, _ := addresses.Listing(key)
			failed[n] = c.Holds(prefix)
		}
		if err != nil {
			failed[n] = err
		}
	}
	if err != nil || failed[group[0]] != nil {
		return
	}
	if len(group) == 1 {
		found[group[0]], failed[group[0]] = i.look(ctx, c, secret, first, pattern(group[0]))
		return
	}
	_, key, _ := first.S3()
	below, err := i.matching(ctx, c, secret, key[:strings.LastIndexByte(key, '/')+1]+"*")
	byURL := map[string]addresses.Object{}
	for _, o := range below {
		byURL[o.URL] = o
	}
	for _, n := range group {
		o, there := byURL[list[n].URL]
		switch {
		case there:
			o.Address = list[n]
			found[n] = []addresses.Object{o}
		case err != nil:
			failed[n] = err
		default:
			found[n], failed[n] = i.look(ctx, c, secret, list[n], false) // a large folder is listed in part
		}
	}
}

func (i *Inputs) look(ctx context.Context, c connections.Connection, secret connections.Credentials, a addresses.Address, pattern bool) (list []addresses.Object, err error) {
	bucket, key, s3 := a.S3()
	switch {
	case pattern || addresses.IsFolder(a.URL):
		list, err = i.matching(ctx, c, secret, key)
		for n := range list {
			list[n].Connection, list[n].SHA256 = a.Connection, a.SHA256
		}
		if err == nil && len(list) == 0 {
			err = fault.NotFound("no object of the bucket %s matches, or is in that folder", bucket)
		}
		return list, err
	case s3:
		o, err := i.client.stat(ctx, c, secret, key)
		o.Address = a
		return []addresses.Object{o}, explain(c, err)
	}
	o, err := i.client.head(ctx, c, secret, a.URL)
	o.Address = a
	return []addresses.Object{o}, explain(c, err)
}

// maxListed bounds how much is listed for one pattern.
const maxListed = 100_000

// matching are the objects that a pattern means, sorted by their keys.
func (i *Inputs) matching(ctx context.Context, c connections.Connection, secret connections.Credentials, pattern string) ([]addresses.Object, error) {
	client, err := i.client.bucket(ctx, c, secret)
	if err != nil {
		return nil, err
	}
	prefix, flat := addresses.Listing(pattern)
	delimiter, folder := "", strings.HasSuffix(pattern, "/")
	if folder {
		prefix = pattern // in which a star is a star
	} else if flat {
		delimiter = "/"
	}
	var list []addresses.Object
	cursor, listed := "", 0
	for {
		page, err := client.ListObjectsV2(c.Bucket, prefix, "", cursor, delimiter, listPage)
		if err != nil {
			return nil, explain(c, err)
		}
		for _, o := range page.Contents {
			if !folder && !addresses.Match(pattern, o.Key) || strings.HasSuffix(o.Key, "/") || path.Base(o.Key) == ".." {
				continue
			}
			list = append(list, addresses.Object{
				Address: addresses.Address{URL: Address(c.Bucket, o.Key)}, Endpoint: c.Endpoint, Size: o.Size, ETag: strings.Trim(o.ETag, `"`),
			})
		}
		if listed += len(page.Contents) + len(page.CommonPrefixes); len(list) > addresses.MaxMatches || listed > maxListed {
			return nil, fault.Invalid("more than %d objects match, or are in that folder: name fewer", addresses.MaxMatches)
		}
		if !page.IsTruncated {
			break
		}
		cursor = page.NextContinuationToken
	}
	slices.SortFunc(list, func(a, b addresses.Object) int { return strings.Compare(a.URL, b.URL) })
	return list, nil
}

// Open reads a stretch of an object, to its end where length is negative. An object
// that is not what it was is fault.KindConflict.
func (i *Inputs) Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error) {
	if o.Endpoint == loadedEndpoint {
		return i.openLoaded(o, from, length)
	}
	c, secret, err := i.reach(ctx, team, o.Address)
	if err != nil {
		return nil, err
	}
	var r io.ReadCloser
	if _, key, s3 := o.S3(); s3 {
		r, err = i.client.get(ctx, c, secret, key, o, from, length)
	} else {
		r, err = i.client.read(ctx, c, secret, o, from, length)
	}
	return r, explain(c, err)
}
