package billing

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// QuotaUse is what a team may use, and what was used of it this month.
type QuotaUse struct {
	Quotas quotas.Quotas
	Team   quotas.Use
	Person quotas.Use // of who asks
	Stored int64      // bytes
	Renews time.Time  // when the use of vCPU hours begins anew
	People []PersonUse
}

// PersonUse is what one person of a team has used; guests are one without an id.
type PersonUse struct {
	User ids.User
	Name string
	quotas.Use
}

// QuotaStore keeps quotas, and what counts against them.
type QuotaStore interface {
	// QuotasOf are what a team may use.
	QuotasOf(ctx context.Context, team ids.Team) (quotas.Quotas, error)
	// VCPUUse is what a team may use, and what it and one of its people have used this month.
	VCPUUse(ctx context.Context, team ids.Team, user ids.User, now time.Time) (QuotaUse, error)
	// PeopleUse is what everybody of a team has used this month, most first.
	PeopleUse(ctx context.Context, team ids.Team, now time.Time) ([]PersonUse, error)
}

// Quotas are what the caller's team may use, with what it and the caller have used.
// Whoever manages billing sees everybody's part.
func (s *Service) Quotas(ctx context.Context, caller access.Caller) (QuotaUse, error) {
	if err := caller.Must(access.Read); err != nil {
		return QuotaUse{}, err
	}
	now := s.now()
	u, err := s.quotas.VCPUUse(ctx, caller.Team, caller.User, now)
	if err != nil {
		return u, err
	}
	b, err := s.ledger.Balance(ctx, caller.Team, now)
	if err != nil {
		return u, err
	}
	u.Stored = b.Stored
	_, u.Renews = credits.Period(now)
	if caller.May(access.ManageBilling) {
		u.People, err = s.quotas.PeopleUse(ctx, caller.Team, now)
	}
	return u, err
}

// storageLimit is the smaller of what a plan includes, where 0 is any number of bytes,
// and the quota; nil is no limit.
func storageLimit(included int64, quota quotas.Limit) *int64 {
	limit := int64(quota)
	switch {
	case quota == quotas.Unlimited && included == 0:
		return nil
	case quota == quotas.Unlimited || included > 0 && included < limit:
		limit = included
	}
	return &limit
}

// WithoutBilling is the room of an installation where nothing is charged.
func (s *Service) WithoutBilling() *Service {
	off := *s
	off.catalog, off.pay, off.events = s.catalog.WithoutBilling(), nil, nil
	return &off
}

// Off reports whether nothing is charged here.
func (s *Service) Off() bool { return s != nil && s.catalog.Off }

// addQuotas refuses what the quotas of vCPU hours leave no first minute of, and says how
// long what is left lasts.
func addQuotas(u QuotaUse, now time.Time, e *Estimate) {
	for _, q := range []struct {
		whose string
		limit quotas.Limit
		use   quotas.Use
	}{{"the team's", u.Quotas.Team, u.Team}, {"the person's", u.Quotas.Person, u.Person}} {
		lasts := q.limit.Left(q.use.Sum()) / int64(max(1, e.Size.VCPU))
		e.Lasts = min(e.Lasts, lasts)
		if e.Allowed && lasts < credits.HoldSeconds {
			e.Allowed, e.Reason = false, quotas.SpentHours(q.whose, q.limit, q.use, now).Error()
		}
	}
}
