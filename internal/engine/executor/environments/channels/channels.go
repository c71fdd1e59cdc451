// Package channels fetches from the conda channels that the operator allows: what
// they have, written anew with nothing but packages whose hashes are known, and
// those packages. The tools that read either have no network.
package channels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/safedial"
)

// Channels are those of the operator.
type Channels struct {
	names   []string // in the operator's order
	client  *http.Client
	trusted safedial.Hosts
	kept    *kept // nil: lists are fetched each time

	mu       sync.Mutex
	bases    map[string]*url.URL
	unplaced map[string]string // what conda calls channels whose addresses are not known yet
}

const (
	// listTime is for what one folder of a channel has; that of the largest are
	// hundreds of megabytes.
	listTime = 10 * time.Minute
	window   = 256 << 20 // bytes of memory to unpack it

	tries    = 3 // of a request that was not answered, or with the server's failure
	tryAfter = 500 * time.Millisecond
)

// New reads the addresses of channels, whose last words are their names.
func New(addresses []string, allowPrivate bool) (*Channels, error) {
	c := none(allowPrivate)
	for _, text := range addresses {
		if err := c.add(text); err != nil {
			return nil, fmt.Errorf("--conda-channels: %w", err)
		}
	}
	return c, nil
}

// Configured are the channels that conda on the machine is told of, by address, or by name
// where only conda knows the address. They may be in private networks, since the machine's
// configuration names them.
func Configured(channels []string, allowPrivate bool) (*Channels, error) {
	c := none(allowPrivate)
	for _, text := range channels {
		if name := path.Base(text); !strings.Contains(text, "://") && environment.CheckChannel(name) == "" && !c.Has(name) {
			c.names, c.unplaced[name] = append(c.names, name), text
			continue
		}
		if err := c.add(text); err != nil {
			return nil, err
		}
		c.trusted.Add(c.bases[c.names[len(c.names)-1]])
	}
	return c, nil
}

func none(allowPrivate bool) *Channels {
	c := &Channels{bases: map[string]*url.URL{}, unplaced: map[string]string{}}
	c.client = &http.Client{Transport: safedial.TransportTo(allowPrivate, &c.trusted), CheckRedirect: safedial.FewRedirects}
	return c
}

func (c *Channels) add(address string) error {
	u, name, err := parse(address)
	if err != nil {
		return err
	}
	if environment.CheckChannel(name) != "" || c.Has(name) {
		return fmt.Errorf("each address ends with the name of its channel, such as conda-forge; %q does not, or occurs twice", name)
	}
	c.names, c.bases[name] = append(c.names, name), u
	return nil
}

func parse(address string) (u *url.URL, name string, err error) {
	u, err = url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errors.New("an address is not one of a channel such as https://conda.example.org/conda-forge")
	}
	return u, path.Base(u.Path), nil
}

// Unplaced is what conda calls the channels that have no address yet.
func (c *Channels) Unplaced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Values(c.unplaced))
}

// Place says which address conda knows for what it calls a channel.
func (c *Channels) Place(called, address string) error {
	u, name, err := parse(address)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unplaced[name] != called {
		return fmt.Errorf("conda knows %q under another name", called)
	}
	delete(c.unplaced, name)
	c.bases[name] = u
	c.trusted.Add(u)
	return nil
}

// base is the address of a channel; nil where there is none.
func (c *Channels) base(name string) *url.URL {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bases[name]
}

// Names are those of the channels, the first one first.
func (c *Channels) Names() []string { return slices.Clone(c.names) }

// Has reports whether there is a channel of that name.
func (c *Channels) Has(name string) bool { return slices.Contains(c.names, name) }

// Reach reports whether the channels answer. All of them must have an address.
func (c *Channels) Reach(ctx context.Context) (err error) {
	for _, name := range c.names {
		list, openErr := c.list(ctx, name, environment.NoPlatform)
		if openErr == nil {
			openErr = list.Close()
		}
		if openErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, openErr))
		}
	}
	return err
}

// errAbsent is about what a channel does not have.
var errAbsent = errors.New("the channel does not have it")

// open asks a channel, and asks again where that may help. What was kept is asked
// for only where it has changed since: else the answer is http.StatusNotModified.
func (c *Channels) open(ctx context.Context, known *sent, channel string, parts ...string) (*http.Response, error) {
	for try := 1; ; try++ {
		answer, passing, err := c.openOnce(ctx, known, channel, parts...)
		if err == nil || !passing || try == tries {
			return answer, err
		}
		select {
		case <-time.After(time.Duration(try) * tryAfter):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// openOnce reports of an error whether it may pass.
func (c *Channels) openOnce(ctx context.Context, known *sent, channel string, parts ...string) (answer *http.Response, passing bool, err error) {
	base := c.base(channel)
	if base == nil {
		return nil, false, fmt.Errorf("there is no channel %q", channel)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(parts...).String(), nil)
	if err != nil {
		return nil, false, err
	}
	if known != nil {
		known.ask(r)
	}
	if answer, err = c.client.Do(r); err != nil {
		passing = !errors.Is(err, safedial.ErrPrivate) && !errors.Is(err, safedial.ErrRedirect)
		return nil, passing, fmt.Errorf("the channel %s cannot be reached: %s", channel, safedial.Reason(err))
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNotModified && known != nil {
		return answer, false, nil
	}
	err = fmt.Errorf("the channel %s answered %s", channel, answer.Status)
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone {
		err = errAbsent
	}
	return nil, answer.StatusCode >= http.StatusInternalServerError, errors.Join(err, answer.Body.Close())
}

// text is what a folder of a channel has: as the channel sends it, unpacked, or as it
// was kept.
type text struct {
	io.Reader
	body    io.Closer
	decoder *zstd.Decoder // nil: it was not packed
	kept    bool
	keeper  *keeper // nil: it is not to be kept
}

// unpack begins to read what is packed.
func unpack(body io.ReadCloser) (*text, error) {
	decoder, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, errors.Join(err, body.Close())
	}
	return &text{Reader: decoder, body: body, decoder: decoder}, nil
}

func (t *text) Close() error {
	if t.decoder != nil {
		t.decoder.Close()
	}
	t.keeper.close()
	return t.body.Close()
}

// list opens what a folder of a channel has, packed or not, or what was kept of it
// where that has not changed.
func (c *Channels) list(ctx context.Context, channel, folder string) (*text, error) {
	t, err := c.listIn(ctx, channel, folder, "repodata.json.zst", unpack)
	if errors.Is(err, errAbsent) {
		t, err = c.listIn(ctx, channel, folder, "repodata.json", func(body io.ReadCloser) (*text, error) { return &text{Reader: body, body: body}, nil })
	}
	return t, err
}

// Packages writes what a folder of a channel has, without packages of names that
// are hidden, and returns the names that it wrote. A folder that is not there has
// nothing.
func (c *Channels) Packages(ctx context.Context, channel, folder string, hidden map[string]bool, w io.Writer) (names map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	out := newOutput(w, folder, hidden)
	list, err := c.list(ctx, channel, folder)
	if errors.Is(err, errAbsent) {
		return out.names, out.close()
	}
	if err != nil {
		return nil, err
	}
	defer list.Close()
	if list.kept {
		err = readKept(list, out.add)
	} else {
		err = readList(list, folder, func(e entry) error {
			list.keeper.add(e)
			return out.add(e)
		})
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return nil, fmt.Errorf("what the channel %s has cannot be fetched: %s", channel, safedial.Reason(err))
	}
	if err != nil {
		return nil, fmt.Errorf("what the channel %s has cannot be read: %w", channel, err)
	}
	list.keep(ctx)
	return out.names, out.close()
}

// Fetch writes a package of a lock. An error means that what was written is not
// what the lock says, or more than so many bytes.
func (c *Channels) Fetch(ctx context.Context, p environment.Locked, most int64, w io.Writer) (size int64, err error) {
	answer, err := c.open(ctx, nil, p.File.Channel, p.File.Folder, p.File.Name)
	if errors.Is(err, errAbsent) {
		return 0, fmt.Errorf("the channel %s has no %s any more", p.File.Channel, p.File.Name)
	}
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(w, sum), io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return size, fmt.Errorf("%s cannot be fetched: %s", p.File.Name, safedial.Reason(err))
	case size > most:
		return size, errors.New("its packages are too large")
	case hex.EncodeToString(sum.Sum(nil)) != p.Hashes[0]:
		return size, fmt.Errorf("hash mismatch: %s of the channel %s is not the file that the lock names", p.File.Name, p.File.Channel)
	}
	return size, nil
}
