// Package environments speaks HTTP for the software that was built for nodes.
package environments

import (
	"encoding/json"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/environments"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Environments *environments.Service
}

// GetRunEnvironment answers GET /api/runs/{id}/nodes/{nodeId}/environment.
func (a *API) GetRunEnvironment(x *kernel.Exchange) (kernel.Answer, error) {
	id, node := x.Request.PathValue("id"), x.Request.PathValue("nodeId")
	if !kernel.Printable(id) || !kernel.Printable(node) {
		return kernel.Answer{}, fault.NotFound("no such run")
	}
	e, err := a.Environments.OfNode(x.Context(), x.Caller, ids.Run(id), node)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.RunEnvironment{
		NodeID: node, State: api.EnvironmentState(e.State), Python: kernel.OrNull(e.Python), Packages: []api.LockedPackage{}, Lock: kernel.OrNull(e.Lock),
		Error: kernel.OrNull(e.Error), Log: e.Log, UpdatedAt: kernel.TimeOrNull(e.UpdatedAt),
	}
	for _, p := range e.Packages {
		out.Packages = append(out.Packages, api.LockedPackage{Name: p.Name, Version: p.Version})
	}
	return kernel.OK(out)
}

// EnvironmentOut is what was built, as an export shows it.
func EnvironmentOut(b environments.Build) api.Environment {
	return api.Environment{Spec: json.RawMessage(b.Spec), State: api.EnvironmentState(b.State), Lock: kernel.OrNull(b.Lock), UpdatedAt: api.At(b.UpdatedAt)}
}
