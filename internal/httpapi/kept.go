package httpapi

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/runs"
)

func (a *API) listKeptAttempts(x *exchange) (answer, error) {
	list, err := a.Runs.KeptAttempts(x.ctx(), x.caller, x.runID())
	if err != nil {
		return answer{}, err
	}
	out := make([]api.KeptAttempt, len(list))
	for i, k := range list {
		out[i] = api.KeptAttempt{
			NodeID: k.Node, Shard: k.Shard, Attempt: k.Attempt, Files: k.Files, Bytes: k.Bytes, Truncated: k.Truncated,
			KeptAt: api.At(k.KeptAt), ExpiresAt: api.At(k.ExpiresAt),
		}
	}
	return ok(out)
}

func (a *API) listKeptFiles(x *exchange) (answer, error) {
	if _, err := a.Runs.KeptAttempts(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	k := runs.AttemptKey{Run: x.runID(), Node: x.r.PathValue("nodeId")}
	for name, into := range map[string]*int{"shard": &k.Shard, "attempt": &k.Attempt} {
		n, err := strconv.ParseUint(x.r.PathValue(name), 10, 31)
		if err != nil {
			return answer{}, fault.NotFound("no such attempt")
		}
		*into = int(n)
	}
	list, err := a.Runs.KeptFiles(x.ctx(), x.caller, k, x.base())
	if err != nil {
		return answer{}, err
	}
	out := make([]api.KeptFile, len(list))
	for i, f := range list {
		out[i] = api.KeptFile{Path: f.Path, Kind: string(f.Kind), Size: f.Size, URL: orNull(f.URL), ExpiresAt: timeOrNull(f.ExpiresAt)}
	}
	return ok(out)
}

func (a *API) getRecipe(x *exchange) (answer, error) {
	if _, err := a.Runs.Run(x.ctx(), x.caller, x.runID()); err != nil {
		return answer{}, err
	}
	shard, err := number(x.r, "shard", 0, math.MaxInt32, 0)
	if err != nil {
		return answer{}, err
	}
	node := x.r.PathValue("nodeId")
	if !printable(node) {
		return answer{}, fault.NotFound("no such step")
	}
	r, err := a.Runs.Recipe(x.ctx(), x.caller, x.runID(), node, shard, x.base())
	if err != nil {
		return answer{}, err
	}
	out := api.Recipe{
		Attempt: r.Attempt, Interpreter: r.Interpreter, Command: r.Command, Image: orNull(r.Image), Env: r.Env, Folder: r.Folder,
		Files: []api.RecipeFile{}, Lists: r.Lists,
	}
	for _, f := range r.Files {
		out.Files = append(out.Files, api.RecipeFile{
			Path: f.Path, Key: f.Key, Size: f.Size, Sha256: orNull(f.SHA256), URL: f.URL, ExpiresAt: api.At(f.ExpiresAt),
		})
	}
	return ok(out)
}
