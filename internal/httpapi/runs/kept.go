package runs

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
)

// ListKeptAttempts answers GET /api/runs/{id}/attempts.
func (a *API) ListKeptAttempts(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Runs.KeptAttempts(x.Context(), x.Caller, RunID(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.KeptAttempt, len(list))
	for i, k := range list {
		out[i] = api.KeptAttempt{
			NodeID: k.Node, Shard: k.Shard, Attempt: k.Attempt, Files: k.Files, Bytes: k.Bytes, Truncated: k.Truncated,
			KeptAt: api.At(k.KeptAt), ExpiresAt: api.At(k.ExpiresAt),
		}
	}
	return kernel.OK(out)
}

// ListKeptFiles answers GET /api/runs/{id}/attempts/{nodeId}/{shard}/{attempt}/files.
func (a *API) ListKeptFiles(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Runs.KeptAttempts(x.Context(), x.Caller, RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	k := runs.AttemptKey{Run: RunID(x), Node: x.Request.PathValue("nodeId")}
	for name, into := range map[string]*int{"shard": &k.Shard, "attempt": &k.Attempt} {
		n, err := strconv.ParseUint(x.Request.PathValue(name), 10, 31)
		if err != nil {
			return kernel.Answer{}, fault.NotFound("no such attempt")
		}
		*into = int(n)
	}
	list, err := a.Runs.KeptFiles(x.Context(), x.Caller, k, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.KeptFile, len(list))
	for i, f := range list {
		out[i] = api.KeptFile{Path: f.Path, Kind: string(f.Kind), Size: f.Size, URL: kernel.OrNull(f.URL), ExpiresAt: kernel.TimeOrNull(f.ExpiresAt)}
	}
	return kernel.OK(out)
}

// GetRecipe answers GET /api/runs/{id}/nodes/{nodeId}/recipe.
func (a *API) GetRecipe(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Runs.Run(x.Context(), x.Caller, RunID(x)); err != nil {
		return kernel.Answer{}, err
	}
	shard, err := kernel.Number(x.Request, "shard", 0, math.MaxInt32, 0)
	if err != nil {
		return kernel.Answer{}, err
	}
	node := x.Request.PathValue("nodeId")
	if !kernel.Printable(node) {
		return kernel.Answer{}, fault.NotFound("no such step")
	}
	r, err := a.Runs.Recipe(x.Context(), x.Caller, RunID(x), node, shard, x.Base())
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.Recipe{
		Attempt: r.Attempt, Interpreter: r.Interpreter, Command: r.Command, Image: kernel.OrNull(r.Image), Env: r.Env, Folder: r.Folder,
		Files: []api.RecipeFile{}, Lists: r.Lists, Environment: r.Environment,
	}
	if c := r.Code; c != nil {
		out.Source = &api.RecipeSource{Git: c.Git, Commit: c.Commit, Submodules: c.Submodules}
	}
	if e := r.Engine; e != "" {
		out.Engine = new(api.PipelineEngine(e))
	}
	for _, f := range r.Files {
		out.Files = append(out.Files, api.RecipeFile{
			Path: f.Path, Key: f.Key, Size: f.Size, Sha256: kernel.OrNull(f.SHA256), URL: f.URL, ExpiresAt: api.At(f.ExpiresAt),
		})
	}
	return kernel.OK(out)
}
