package builtin

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// Device is a request of a terminal, which waits until somebody allows it in
// a browser (RFC 8628).
type Device struct {
	DeviceHash string
	UserHash   string
	Client     string
	State      DeviceState
	User       ids.User
	Pause      time.Duration // between two polls
	PolledAt   time.Time
	ExpiresAt  time.Time
}

// DeviceState is what became of a device's request.
type DeviceState string

// The states of a device's request. One that was allowed and fetched is gone.
const (
	DeviceOpen    DeviceState = "open"
	DeviceAllowed DeviceState = "allowed"
	DeviceDenied  DeviceState = "denied"
)

// DeviceCodes are what the device shows and polls with.
type DeviceCodes struct {
	Device string
	User   string
	Life   time.Duration
	Pause  time.Duration
}

const (
	deviceLife  = 15 * time.Minute
	devicePause = 5 * time.Second
	// No vowels, so that no word appears; no digits, which look like letters.
	userLetters = "BCDFGHJKLMNPQRSTVWXZ"
)

// Devices are terminals that ask for access without a browser of their own.
type Devices struct {
	store   DeviceStore
	oauth   *OAuth
	limiter limiter
	now     func() time.Time
}

// errNoDevices refuses programs that registered themselves. A code tells a person nothing
// of who asks, and the name that they would be shown is the program's own choice.
var errNoDevices = fault.Invalid("programs that registered themselves sign in by /oauth/authorize, not by a code").WithCode("unauthorized_client")

// Start opens a request.
func (s *Devices) Start(ctx context.Context, client Client, clientPrefix string) (DeviceCodes, error) {
	if client.SelfRegistered() {
		return DeviceCodes{}, errNoDevices
	}
	if err := s.limiter.take(ctx, "device "+clientPrefix, devicesByAddress, "too many devices asked from your address; try again later"); err != nil {
		return DeviceCodes{}, err
	}
	codes := DeviceCodes{Device: newSecret(), User: newUserCode(), Life: deviceLife, Pause: devicePause}
	now := s.now()
	return codes, s.store.InsertDevice(ctx, Device{
		DeviceHash: hashed(codes.Device), UserHash: hashed(plainUserCode(codes.User)), Client: client.ID, State: DeviceOpen,
		Pause: devicePause, PolledAt: now.Add(-devicePause), ExpiresAt: now.Add(deviceLife),
	})
}

func newUserCode() string {
	var code strings.Builder
	for random := make([]byte, 1); code.Len() < 8; {
		rand.Read(random)
		if n := int(random[0]); n < 240 { // 240 is a multiple of 20: every letter is as likely
			code.WriteByte(userLetters[n%len(userLetters)])
		}
	}
	return code.String()[:4] + "-" + code.String()[4:]
}

// plainUserCode forgives how a person types a code.
func plainUserCode(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(text[:min(len(text), 64)]))
}

// UserCode is a code as the device shows it, however it was typed.
func UserCode(typed string) string {
	plain := plainUserCode(typed)
	if len(plain) != 8 || !visible(plain) {
		return typed
	}
	return plain[:4] + "-" + plain[4:]
}

// Find is the client of the open request that a person's code belongs to. Codes are short,
// so guessing is slowed as for passwords.
func (s *Devices) Find(ctx context.Context, p identity.Presence, userCode, clientPrefix string) (Client, error) {
	var d Device
	buckets := guessing("device code "+string(p.User.ID), clientPrefix)
	err := s.limiter.guess(ctx, buckets, errUserCode, func() (bool, error) {
		var err error
		d, err = s.store.Device(ctx, hashed(plainUserCode(userCode)), s.now())
		if fault.Is(err, fault.KindNotFound) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return Client{}, err
	}
	client, err := s.oauth.Client(ctx, d.Client)
	if err == nil && client.SelfRegistered() {
		err = errUserCode
	}
	return client, err
}

var errUserCode = fault.NotFound("no device is waiting for this code: check it for typos, or start again on the device").WithCode("unknown_code")

// Decide allows or denies the request.
func (s *Devices) Decide(ctx context.Context, p identity.Presence, userCode string, allow bool) error {
	err := s.store.DecideDevice(ctx, hashed(plainUserCode(userCode)), p.User.ID, allow, s.now())
	if fault.Is(err, fault.KindNotFound) {
		return errUserCode
	}
	return err
}

var (
	errDevicePending = fault.Invalid("the device has not been allowed yet").WithCode("authorization_pending")
	errDeviceFast    = fault.Invalid("the device polls too often: wait five seconds longer between requests").WithCode("slow_down")
	errDeviceDenied  = fault.Invalid("access was denied").WithCode("access_denied")
	errDeviceExpired = fault.Invalid("the device was not allowed in time: start again").WithCode("expired_token")
)

// Poll gives tokens once somebody has allowed the device.
func (s *Devices) Poll(ctx context.Context, client Client, deviceCode string) (Tokens, error) {
	if client.SelfRegistered() {
		return Tokens{}, errNoDevices
	}
	t, row := newTokens(s.now())
	err := s.store.PollDevice(ctx, hashed(deviceCode), client.ID, row, func(d Device) (Device, error) { return polled(d, row.Now) })
	return t, orRefused(err)
}

// polled is the request after one more poll, and what the device is told.
func polled(d Device, now time.Time) (Device, error) {
	if !now.Before(d.ExpiresAt) {
		return d, errDeviceExpired
	}
	fast := now.Sub(d.PolledAt) < d.Pause
	d.PolledAt = now
	switch {
	case d.State == DeviceDenied:
		return d, errDeviceDenied
	case fast:
		d.Pause += devicePause
		return d, errDeviceFast
	case d.State == DeviceAllowed:
		return d, nil
	}
	return d, errDevicePending
}
