package runs

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// RemoteFiles is where inputs lie that are not files of the team. What it says in a
// foreseen fault may be shown.
type RemoteFiles interface {
	// Fits is nil where a team may use the connections of addresses for them.
	Fits(ctx context.Context, team ids.Team, list []addresses.Address) error
	// Look finds what is at addresses now: the objects of each, or why there are
	// none. Those that are patterns mean all that match.
	Look(ctx context.Context, team ids.Team, list []addresses.Address, pattern func(int) bool) ([][]addresses.Object, []error)
}

// AddressStore keeps what runs take from elsewhere.
type AddressStore interface {
	AddressesOf(ctx context.Context, team ids.Team, id ids.Run) ([]addresses.Object, error)
	// LearntHashes completes objects with what the team knows of their bytes.
	LearntHashes(ctx context.Context, team ids.Team, list []addresses.Object) error
	// OutputCopyOf is where a run's outputs are copied; fault.KindNotFound: nowhere.
	OutputCopyOf(ctx context.Context, team ids.Team, id ids.Run) (outputto.Copy, error)
}

// lookTime is how long the other sides may take to answer before a run is
// accepted.
const lookTime = 10 * time.Second

// checkInputs finds the files and looks at the addresses that a run was given, and
// gives them to it.
func (s *Service) checkInputs(ctx context.Context, r *Run, in givenInputs) error {
	keys, err := s.lookUpAddresses(ctx, r, in)
	if err != nil {
		return err
	}
	if err := s.checkFiles(ctx, r, keys); err != nil {
		return err
	}
	if err := s.checkKinds(ctx, r, in, keys); err != nil {
		return err
	}
	r.Inputs, err = json.Marshal(keys)
	return err
}

// checkFiles finds the files among what a run was given.
func (s *Service) checkFiles(ctx context.Context, r *Run, inputs map[string][]string) error {
	var keys []string
	for _, list := range inputs {
		for _, key := range list {
			if !addresses.Is(key) {
				keys = append(keys, key)
			}
		}
	}
	missing, err := s.submit.MissingFiles(ctx, r.Team, keys)
	if err == nil && len(missing) == 0 && r.Invite != "" {
		// A guest must not find out the team's files by trying.
		missing, err = s.submit.FilesNotUsed(ctx, r.Team, r.Workflow, keys)
	}
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fault.NotFound("the team has no file with the key %q", missing[0])
	}
	return nil
}

// checkKinds has files where files are taken, and folders where folders are.
func (s *Service) checkKinds(ctx context.Context, r *Run, in givenInputs, inputs map[string][]string) error {
	folders, err := s.submit.FoldersAmong(ctx, r.Team, slices.Concat(slices.Collect(maps.Values(inputs))...))
	if err != nil {
		return err
	}
	return in.CheckKinds(inputs, folders)
}

// mayReach refuses addresses where there can be none.
func (s *Service) mayReach(r *Run) error {
	if r.Invite != "" {
		return fault.Forbidden("your link lets you use files of the team, not addresses: ask whoever sent it").WithCode("addresses_not_allowed")
	}
	if s.remote == nil {
		return fault.Invalid("this server takes no addresses as inputs")
	}
	return nil
}

// lookUpAddresses asks for everything that lies elsewhere, outside of any transaction,
// and returns the keys of the inputs with patterns replaced by what they mean.
func (s *Service) lookUpAddresses(ctx context.Context, r *Run, in givenInputs) (map[string][]string, error) {
	list, places := in.Addresses()
	if len(list) == 0 {
		return in.Keys(), nil
	}
	if err := s.mayReach(r); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, failed := s.remote.Look(limited, r.Team, list, func(i int) bool { return in.Pattern(list[i], places[i]) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := in.Unreachable(list, places, failed); err != nil {
		return nil, err
	}
	objects := map[string]addresses.Object{}
	meaning := map[inputPlace][]string{}
	for i, some := range found {
		for _, o := range some {
			if before, twice := objects[o.URL]; twice && before.Address != o.Address {
				return nil, fault.Invalid("%s: %s is given twice, with another connection or sha256", in.Path(places[i]), o.Shown())
			}
			objects[o.URL] = o
			meaning[places[i]] = append(meaning[places[i]], o.URL)
		}
		if url := list[i].URL; addresses.IsFolder(url) {
			meaning[places[i]] = []string{url}
			if _, err := addresses.Manifest(url, some); err != nil {
				return nil, fault.Invalid("%s: %s cannot be a folder: %v", in.Path(places[i]), url, err)
			}
		}
	}
	if len(objects) > addresses.MaxMatches {
		return nil, fault.Invalid("a run takes at most %d files from elsewhere, and these are %d", addresses.MaxMatches, len(objects))
	}
	r.Addresses = make([]addresses.Object, 0, len(objects))
	for _, o := range objects {
		r.Addresses = append(r.Addresses, o)
	}
	sort.Slice(r.Addresses, func(i, j int) bool { return r.Addresses[i].URL < r.Addresses[j].URL })
	if err := s.known.LearntHashes(ctx, r.Team, r.Addresses); err != nil {
		return nil, err
	}
	for _, o := range r.Addresses {
		if o.SHA256 != "" && o.Learnt != "" && o.SHA256 != o.Learnt {
			return nil, fault.Invalid("%s is not what was asked for: its sha256 is %s", o.Shown(), o.Learnt).WithCode("input_changed")
		}
		need := admission.Need{Kind: admission.Inputs, Ref: string(r.Team)}
		if o.Learnt == "" && !slices.Contains(r.Needs, need) {
			r.Needs = append(r.Needs, need)
		}
	}
	return in.Expanded(meaning), nil
}

// asGiven are the inputs of a run as somebody could give them to another.
func (s *Service) asGiven(ctx context.Context, old Run) (map[string]json.RawMessage, error) {
	var keys map[string][]string
	if err := json.Unmarshal(old.Inputs, &keys); err != nil {
		return nil, err
	}
	taken, err := s.known.AddressesOf(ctx, old.Team, old.ID)
	if err != nil {
		return nil, err
	}
	known := map[string]addresses.Address{}
	for _, o := range taken {
		known[o.URL] = o.Address
	}
	inputs := map[string]json.RawMessage{}
	for name, list := range keys {
		values := make([]any, len(list))
		for i, key := range list {
			values[i] = key
			if a, elsewhere := known[key]; elsewhere {
				values[i] = a
			}
			if below := addresses.Below(key, taken); addresses.IsFolder(key) && len(below) > 0 {
				values[i] = addresses.Address{URL: key, Connection: below[0].Connection}
			}
		}
		if inputs[name], err = json.Marshal(values); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}
