package secrets

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/secrets"
)

// SecretOut is a secret, without its value, as the API shows it.
func SecretOut(s secrets.Secret) api.Secret {
	return api.Secret{
		Name: s.Name, Hint: kernel.OrNull(s.Hint), Version: s.Version,
		CreatedAt: api.At(s.CreatedAt), UpdatedAt: api.At(s.UpdatedAt), LastUsedAt: kernel.TimeOrNull(s.LastUsedAt),
	}
}

// ListSecrets answers GET /api/secrets.
func (a *API) ListSecrets(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Secrets.Secrets(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Secret, len(list))
	for i, s := range list {
		out[i] = SecretOut(s)
	}
	return kernel.OK(out)
}

// PutSecret answers PUT /api/secrets/{name}.
func (a *API) PutSecret(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewSecret](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	s, err := a.Secrets.Put(x.Context(), x.Caller, x.Request.PathValue("name"), in.Value)
	return kernel.Answer{Data: SecretOut(s)}, err
}

// DeleteSecret answers DELETE /api/secrets/{name}.
func (a *API) DeleteSecret(x *kernel.Exchange) (kernel.Answer, error) {
	name := x.Request.PathValue("name")
	if !kernel.Printable(name) {
		return kernel.Answer{}, fault.NotFound("no such secret")
	}
	err := a.Secrets.Delete(x.Context(), x.Caller, name)
	return kernel.Answer{Data: api.SecretDeleted{Deleted: true, Name: name}}, err
}
