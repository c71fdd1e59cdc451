package images

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/millrace/millrace/internal/domain/fault"
)

// platform is this machine's.
func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: runtime.GOARCH} }

// canonical is one name for a registry that has several.
func canonical(host string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return host
}

// parse reads a reference and refuses registries that are not to be asked.
func (s *Store) parse(text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err != nil {
		return nil, unavailable("%q is not an image such as quay.io/biocontainers/fastp:0.23.4", text)
	}
	host := hostOf(ref)
	if len(s.Registries) > 0 && !slices.Contains(s.Registries, host) {
		return nil, unavailable("images from %s are not allowed here: use one from %s, or ask the operator to add the registry to --image-registries",
			host, strings.Join(s.Registries, ", "))
	}
	return ref, nil
}

func unavailable(format string, args ...any) *fault.Error {
	return fault.Unavailable(format, args...).WithCode("image_unavailable")
}

func hostOf(ref name.Reference) string { return canonical(ref.Context().RegistryStr()) }

// pinnedTo is the digest in a reference that has one.
func pinnedTo(ref name.Reference) (hash v1.Hash, ok bool) {
	d, ok := ref.(name.Digest)
	if !ok {
		return hash, false
	}
	hash, err := v1.NewHash(d.DigestStr())
	return hash, err == nil
}

// puller speaks to a registry. It tries again, with pauses, what fails for a
// moment.
func (s *Store) puller() (*remote.Puller, error) {
	return remote.NewPuller(
		remote.WithTransport(s.transport), remote.WithAuthFromKeychain(s.keychain()), remote.WithPlatform(platform()),
		remote.WithUserAgent("millrace"), remote.WithRetryBackoff(remote.Backoff{Duration: s.Pause, Factor: 3, Jitter: 0.1, Steps: 3}),
	)
}

// resolveRemote finds out what a reference stands for.
func (s *Store) resolveRemote(ctx context.Context, ref name.Reference) (hash v1.Hash, err error) {
	p, err := s.puller()
	if err != nil {
		return hash, err
	}
	found, err := p.Get(ctx, ref)
	if err != nil {
		return hash, err
	}
	image, err := found.Image()
	if err != nil {
		return hash, err
	}
	return image.Digest()
}

// keychain are the operator's credentials, read again for every pull.
func (s *Store) keychain() authn.Keychain {
	if s.AuthFile == "" {
		return authn.DefaultKeychain
	}
	return authFile(s.AuthFile)
}

// authFile is a file as docker login and podman login write it.
type authFile string

// Resolve finds the credentials for a registry, or for one of its
// repositories.
func (f authFile) Resolve(target authn.Resource) (authn.Authenticator, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, unavailable("the server cannot read its --image-auth-file: ask its operator to mend that")
	}
	defer file.Close()
	known, err := config.LoadFromReader(file)
	if err != nil {
		return nil, unavailable("the server's --image-auth-file is not as docker login writes it: ask its operator to mend that")
	}
	for _, key := range []string{target.String(), target.RegistryStr()} {
		if key == name.DefaultRegistry {
			key = authn.DefaultAuthKey
		}
		found, err := known.GetAuthConfig(key)
		if err != nil {
			return nil, err
		}
		c := authn.AuthConfig{
			Username: found.Username, Password: found.Password, Auth: found.Auth,
			IdentityToken: found.IdentityToken, RegistryToken: found.RegistryToken,
		}
		if c != (authn.AuthConfig{}) {
			return authn.FromConfig(c), nil
		}
	}
	return authn.Anonymous, nil
}
