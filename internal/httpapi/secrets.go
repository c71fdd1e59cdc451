package httpapi

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/secrets"
)

func secretOut(s secrets.Secret) api.Secret {
	return api.Secret{
		Name: s.Name, Hint: orNull(s.Hint), Version: s.Version,
		CreatedAt: api.At(s.CreatedAt), UpdatedAt: api.At(s.UpdatedAt), LastUsedAt: timeOrNull(s.LastUsedAt),
	}
}

func (a *API) listSecrets(x *exchange) (answer, error) {
	list, err := a.Secrets.Secrets(x.ctx(), x.caller)
	if err != nil {
		return answer{}, err
	}
	out := make([]api.Secret, len(list))
	for i, s := range list {
		out[i] = secretOut(s)
	}
	return ok(out)
}

func (a *API) putSecret(x *exchange) (answer, error) {
	in, err := decode[api.NewSecret](x)
	if err != nil {
		return answer{}, err
	}
	s, err := a.Secrets.Put(x.ctx(), x.caller, x.r.PathValue("name"), in.Value)
	return answer{data: secretOut(s)}, err
}

func (a *API) deleteSecret(x *exchange) (answer, error) {
	name := x.r.PathValue("name")
	if !printable(name) {
		return answer{}, fault.NotFound("no such secret")
	}
	err := a.Secrets.Delete(x.ctx(), x.caller, name)
	return answer{data: api.SecretDeleted{Deleted: true, Name: name}}, err
}
