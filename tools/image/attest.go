package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/millrace/millrace/tools/spdx"
)

const (
	inToto         = "application/vnd.in-toto+json"
	provenanceType = "https://slsa.dev/provenance/v1"
)

// statement says something of the program, by its digest.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// provenance is SLSA's, without what would differ between two builds of the same.
type provenance struct {
	BuildDefinition struct {
		BuildType          string            `json:"buildType"`
		ExternalParameters map[string]string `json:"externalParameters"`
		Dependencies       []material        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type material struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest,omitempty"`
}

// attest is a manifest whose layers are statements about the program.
func attest(o order, p program) (v1.Image, error) {
	sum, err := spdx.Sum(p.path)
	if err != nil {
		return nil, err
	}
	document, err := spdx.Of(spdx.Program{Name: o.Recipe, Version: o.Version, Path: p.path, Lock: o.Lock, Created: o.Time})
	if err != nil {
		return nil, err
	}
	built, err := built(o, p)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	of := []subject{{Name: o.Recipe, Digest: map[string]string{"sha256": sum}}}
	for _, s := range []statement{{PredicateType: spdx.PredicateType, Predicate: document}, {PredicateType: provenanceType, Predicate: built}} {
		s.Type, s.Subject = "https://in-toto.io/Statement/v1", of
		text, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: static.NewLayer(text, inToto), MediaType: inToto, Annotations: map[string]string{"in-toto.io/predicate-type": s.PredicateType},
		})
		if err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.History = "unknown", "unknown", nil
	return mutate.ConfigFile(image, file)
}

func built(o order, p program) (provenance, error) {
	var b provenance
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return b, err
	}
	b.BuildDefinition.BuildType = "urn:millrace:make-image"
	b.BuildDefinition.ExternalParameters = map[string]string{"version": o.Version, "platform": p.platform.String(), "go": info.GoVersion}
	for _, s := range info.Settings {
		b.BuildDefinition.ExternalParameters["go "+s.Key] = s.Value
	}
	b.BuildDefinition.Dependencies = []material{{Name: "source", Digest: map[string]string{"gitCommit": o.Commit}}}
	if recipes[o.Recipe].certificates {
		sum := sha256.Sum256([]byte(authorities()))
		b.BuildDefinition.Dependencies = append(b.BuildDefinition.Dependencies, material{Name: certificates, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])}})
	}
	if o.UV != "" {
		sum, err := spdx.Sum(o.uv(p.platform))
		if err != nil {
			return b, err
		}
		b.BuildDefinition.Dependencies = append(b.BuildDefinition.Dependencies, material{Name: "uv", Digest: map[string]string{"sha256": sum}})
	}
	b.RunDetails.Builder.ID = "urn:millrace:makefile"
	return b, nil
}
