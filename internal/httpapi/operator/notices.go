package operator

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/operator"
)

// Notice answers GET /api/operator/notice.
func (a *API) Notice(x *kernel.Exchange) (kernel.Answer, error) {
	n, err := a.Operator.Notice(x.Context())
	return kernel.Answer{Data: noticeOut(n)}, err
}

// SetNotice answers PUT /api/operator/notice.
func (a *API) SetNotice(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorNotice](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	set := operator.Notice{Text: kernel.OrEmpty(in.Text), Level: operator.Level(kernel.OrEmpty(in.Level))}
	if in.Until != nil {
		set.Until = in.Until.Time
	}
	n, err := a.Operator.SetNotice(x.Context(), set)
	if err == nil && a.Board != nil {
		a.Board.Refresh(x.Context())
	}
	return kernel.Answer{Data: noticeOut(n)}, err
}

// Shown answers GET /api/notice.
func (a *API) Shown(*kernel.Exchange) (kernel.Answer, error) {
	return kernel.OK(noticeOut(a.shown()))
}

// Mark names the notice of the moment to clients, so that they read it only when it is another
// one; empty: there is none.
func (a *API) Mark() string { return a.shown().ID }

func (a *API) shown() operator.Notice {
	if a.Board == nil {
		return operator.Notice{}
	}
	return a.Board.Notice()
}

func noticeOut(n operator.Notice) api.Notice {
	if n.Text == "" {
		return api.Notice{}
	}
	return api.Notice{ID: &n.ID, Text: &n.Text, Level: (*string)(&n.Level), Until: kernel.TimeOrNull(n.Until)}
}

// Maintenance answers GET /api/operator/maintenance.
func (a *API) Maintenance(x *kernel.Exchange) (kernel.Answer, error) {
	m, err := a.Operator.Maintenance(x.Context())
	return kernel.Answer{Data: maintenanceOut(m)}, err
}

// SetMaintenance answers PUT /api/operator/maintenance.
func (a *API) SetMaintenance(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.OperatorMaintenanceMode](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.On == nil {
		return kernel.Answer{}, kernel.Wrong("on", "is missing")
	}
	m, err := a.Operator.SetMaintenance(x.Context(), operator.Maintenance{On: *in.On, Message: kernel.OrEmpty(in.Message)})
	return kernel.Answer{Data: maintenanceOut(m)}, err
}

func maintenanceOut(m operator.Maintenance) api.OperatorMaintenance {
	return api.OperatorMaintenance{On: m.On, Message: kernel.OrNull(m.Message), Since: kernel.TimeOrNull(m.Since)}
}
