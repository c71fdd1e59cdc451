package builtin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238 as every authenticator app speaks it
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// SecondFactor is a person's authenticator app.
type SecondFactor struct {
	User    ids.User
	Secret  []byte
	Enabled bool // a first code has come from the app
}

const (
	codeStep      = 30 * time.Second
	codeDigits    = 1_000_000
	recoveryCodes = 10
)

var base32Secret = base32.StdEncoding.WithPadding(base32.NoPadding)

// code is what the app shows in a step (RFC 6238, six digits).
func (f SecondFactor) code(step int64) string {
	mac := hmac.New(sha1.New, f.Secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes everything
	sum := mac.Sum(nil)
	from := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[from:])&0x7fffffff%codeDigits)
}

// step is the one whose code this is: the present one or a neighbour, for
// clocks that differ.
func (f SecondFactor) step(code string, now time.Time) (step int64, ok bool) {
	present := now.Unix() / int64(codeStep.Seconds())
	for s := present - 1; s <= present+1; s++ {
		if subtle.ConstantTimeCompare([]byte(f.code(s)), []byte(code)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// SecondFactors ask for more than a password.
type SecondFactors struct {
	store       SecondFactorStore
	credentials credentials
	limiter     limiter
	now         func() time.Time
}

// Enabled reports whether the person signs in with a second factor.
func (s *SecondFactors) Enabled(ctx context.Context, p identity.Presence) (bool, error) {
	f, err := s.store.SecondFactor(ctx, p.User.ID)
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	return f.Enabled, err
}

// BegunFactor is what the app must be given. It is shown this once.
type BegunFactor struct{ Secret, URL string }

// Begin makes a secret for an app; it counts once a code has come back.
func (s *SecondFactors) Begin(ctx context.Context, p identity.Presence, password, clientPrefix string) (BegunFactor, error) {
	if err := s.credentials.prove(ctx, p, password, clientPrefix); err != nil {
		return BegunFactor{}, err
	}
	f := SecondFactor{User: p.User.ID, Secret: make([]byte, 20)}
	rand.Read(f.Secret)
	if err := s.store.PutSecondFactor(ctx, f); err != nil {
		return BegunFactor{}, err // one that is on is not replaced
	}
	text := base32Secret.EncodeToString(f.Secret)
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/Millrace:" + p.User.Email, RawQuery: url.Values{"secret": {text}, "issuer": {"Millrace"}}.Encode()}
	return BegunFactor{Secret: text, URL: u.String()}, nil
}

var errCode = fault.Forbidden("the code is wrong: check the clock of your device, and use each code once").WithCode("wrong_code")

// Confirm turns the second factor on and gives recovery codes.
func (s *SecondFactors) Confirm(ctx context.Context, p identity.Presence, code, clientPrefix string) ([]string, error) {
	f, err := s.store.SecondFactor(ctx, p.User.ID)
	if fault.Is(err, fault.KindNotFound) {
		return nil, fault.Conflict("begin first, to get a secret for your app").WithCode("not_begun")
	}
	if err != nil {
		return nil, err
	}
	if f.Enabled {
		return nil, errFactorOn
	}
	codes, hashes := newRecoveryCodes()
	err = s.limiter.guess(ctx, guessing("code "+string(p.User.ID), clientPrefix), errCode, func() (bool, error) {
		step, ok := f.step(plainCode(code), s.now())
		if !ok {
			return false, nil
		}
		return true, s.store.EnableSecondFactor(ctx, p.User.ID, step, hashes)
	})
	return codes, err
}

var errFactorOn = fault.Conflict("two-factor authentication is already on: turn it off first").WithCode("already_enabled")

func newRecoveryCodes() (codes, hashes []string) {
	for range recoveryCodes {
		c := newSecret()[:16] // 80 bits
		codes, hashes = append(codes, c[:4]+"-"+c[4:8]+"-"+c[8:12]+"-"+c[12:]), append(hashes, hashed(c))
	}
	return codes, hashes
}

// plainCode forgives how a person types a code.
func plainCode(text string) string {
	return strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(text))
}

// Disable turns the second factor off, for who has both factors. Where nobody signs in
// by a password, a code proves them alone.
func (s *SecondFactors) Disable(ctx context.Context, p identity.Presence, password, code, clientPrefix string) error {
	if !s.credentials.policy.noPasswords {
		if err := s.credentials.prove(ctx, p, password, clientPrefix); err != nil {
			return err
		}
	}
	f, err := s.store.SecondFactor(ctx, p.User.ID)
	if fault.Is(err, fault.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.Enabled {
		if err := s.prove(ctx, f, code, clientPrefix, errCode); err != nil {
			return err
		}
	}
	return s.store.DeleteSecondFactor(ctx, p.User.ID)
}

// prove takes a code of the app or a recovery code; each works once.
func (s *SecondFactors) prove(ctx context.Context, f SecondFactor, code, clientPrefix string, wrong error) error {
	code = plainCode(code)
	return s.limiter.guess(ctx, guessing("code "+string(f.User), clientPrefix), wrong, func() (bool, error) {
		if step, ok := f.step(code, s.now()); ok {
			return s.store.UseStep(ctx, f.User, step)
		}
		return s.store.UseRecoveryCode(ctx, f.User, hashed(code))
	})
}

var (
	errSecondFactor = fault.Unauthenticated("this account uses two-factor authentication: enter a code from your authenticator app, or a recovery code").WithCode("second_factor_required")
	errWrongCode    = fault.Unauthenticated("the code is wrong: check the clock of your device, and use each code once").WithCode("wrong_code")
)

// require asks for the second factor of an account that has one.
func (s *SecondFactors) require(ctx context.Context, user ids.User, code, clientPrefix string) error {
	f, err := s.store.SecondFactor(ctx, user)
	switch {
	case fault.Is(err, fault.KindNotFound), err == nil && !f.Enabled:
		return nil
	case err != nil:
		return err
	case code == "":
		return errSecondFactor
	}
	return s.prove(ctx, f, code, clientPrefix, errWrongCode)
}
