package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/admission"
)

// Elsewhere is where inputs lie that are not files of the team. What it says in a
// foreseen fault may be shown.
type Elsewhere interface {
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
}

// lookTime is how long the other sides may take to answer before a run is
// accepted.
const lookTime = 10 * time.Second

// givenInputs are what a run was given, by the names of the workflow's inputs.
type givenInputs struct {
	elements map[string][]addresses.Element
	single   map[string]bool // inputs that take one file
	literal  bool
}

// keys are those that there are without asking anybody: an address that is no pattern
// is its own.
func (g givenInputs) keys() map[string][]string {
	keys := map[string][]string{}
	for name, list := range g.elements {
		keys[name] = []string{}
		for _, e := range list {
			if e.Address != nil {
				keys[name] = append(keys[name], e.Address.URL)
			} else {
				keys[name] = append(keys[name], e.Key)
			}
		}
	}
	return keys
}

// inputPlace is where an address stands in what was given.
type inputPlace struct {
	input string
	at    int
}

func (p inputPlace) path(g givenInputs) string {
	if len(g.elements[p.input]) == 1 {
		return "inputs." + p.input
	}
	return fmt.Sprintf("inputs.%s[%d]", p.input, p.at)
}

// addresses are all of them, in the order of their inputs' names.
func (g givenInputs) addresses() (list []addresses.Address, places []inputPlace) {
	names := make([]string, 0, len(g.elements))
	for name := range g.elements {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for i, e := range g.elements[name] {
			if e.Address != nil {
				list, places = append(list, *e.Address), append(places, inputPlace{name, i})
			}
		}
	}
	return list, places
}

// readInputs takes a key, an address, or a list of these, for each input.
func readInputs(g *graph.Graph, in New) (givenInputs, []fault.Detail) {
	var wrong []fault.Detail
	note := func(name, message string) {
		wrong = append(wrong, fault.Detail{Path: "inputs." + name, Message: message})
	}
	given := givenInputs{map[string][]addresses.Element{}, map[string]bool{}, in.literal}
	for name, raw := range in.Inputs {
		input, known := g.Input(name)
		if !known {
			note(name, "is not an input of this workflow")
			continue
		}
		list, err := addresses.Read(raw)
		switch {
		case err != nil:
			note(name, err.Error())
		case !input.Many && len(list) > 1:
			note(name, "takes one file")
		default:
			given.elements[name], given.single[name] = list, !input.Many
		}
	}
	for _, input := range g.Inputs {
		if _, there := in.Inputs[input.Name]; input.Required && !there {
			note(input.Name, "is missing")
		}
	}
	wrong = append(wrong, given.problems()...)
	sort.Slice(wrong, func(i, j int) bool { return wrong[i].Path < wrong[j].Path })
	return given, wrong
}

// problems are what is wrong with how addresses are written.
func (g givenInputs) problems() (wrong []fault.Detail) {
	seen := map[string]addresses.Address{}
	list, places := g.addresses()
	for i, a := range list {
		problem := a.Problem()
		before, twice := seen[a.URL]
		switch {
		case problem != "":
		case twice && before != a:
			problem = "is given twice, with another connection or sha256"
		case a.SHA256 != "" && g.pattern(a, places[i]):
			problem = "is a pattern, and one sha256 cannot be that of many files"
		}
		seen[a.URL] = a
		if problem != "" {
			wrong = append(wrong, fault.Detail{Path: places[i].path(g), Message: problem})
		}
	}
	if len(list) > addresses.MaxGiven && !g.literal {
		wrong = append(wrong, fault.Detail{Path: "inputs", Message: fmt.Sprintf("take at most %d addresses: use a pattern", addresses.MaxGiven)})
	}
	return wrong
}

// pattern reports whether an address means many objects: in an input that takes one
// file a star is a star.
func (g givenInputs) pattern(a addresses.Address, p inputPlace) bool {
	return !g.literal && !g.single[p.input] && a.Pattern()
}

// checkInputs finds the files and looks at the addresses that a run was given, and
// gives them to it.
func (s *Service) checkInputs(ctx context.Context, r *Run, given givenInputs) error {
	keys, err := s.lookElsewhere(ctx, r, given)
	if err != nil {
		return err
	}
	if err := s.checkFiles(ctx, r, keys); err != nil {
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

// lookElsewhere asks for everything that lies elsewhere, outside of any transaction,
// and returns the keys of the inputs with patterns replaced by what they mean.
func (s *Service) lookElsewhere(ctx context.Context, r *Run, given givenInputs) (map[string][]string, error) {
	list, places := given.addresses()
	if len(list) == 0 {
		return given.keys(), nil
	}
	if err := s.mayReach(r); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, failed := s.remote.Look(limited, r.Team, list, func(i int) bool { return given.pattern(list[i], places[i]) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := unreachable(given, list, places, failed); err != nil {
		return nil, err
	}
	objects := map[string]addresses.Object{}
	meaning := map[inputPlace][]string{}
	for i, some := range found {
		for _, o := range some {
			if before, twice := objects[o.URL]; twice && before.Address != o.Address {
				return nil, fault.Invalid("%s: %s is given twice, with another connection or sha256", places[i].path(given), o.Shown())
			}
			objects[o.URL] = o
			meaning[places[i]] = append(meaning[places[i]], o.URL)
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
	return given.expanded(meaning), nil
}

// expanded are the keys, with each address replaced by what it means.
func (g givenInputs) expanded(meaning map[inputPlace][]string) map[string][]string {
	keys := map[string][]string{}
	for name, list := range g.elements {
		keys[name] = []string{}
		for i, e := range list {
			if e.Address == nil {
				keys[name] = append(keys[name], e.Key)
			} else {
				keys[name] = append(keys[name], meaning[inputPlace{name, i}]...)
			}
		}
	}
	return keys
}

// unreachable says all at once which addresses cannot be read. One that is absent is
// not found, and one that the connection is not for is refused as such.
func unreachable(given givenInputs, list []addresses.Address, places []inputPlace, failed []error) error {
	var wrong []fault.Detail
	var absent error
	for i, err := range failed {
		if err == nil {
			continue
		}
		known, ok := errors.AsType[*fault.Error](err)
		message := "it did not answer within 10 seconds"
		if ok {
			message = known.Message
		}
		path := places[i].path(given)
		wrong = append(wrong, fault.Detail{Path: path, Message: list[i].Shown() + ": " + message})
		switch {
		case ok && known.Kind == fault.KindForbidden && known.Code != "":
			return err // outside of the connection's prefix
		case ok && known.Kind == fault.KindNotFound && absent == nil:
			absent = fault.NotFound("%s: %s: %s", path, list[i].Shown(), message)
		}
	}
	if absent != nil || len(wrong) == 0 {
		return absent
	}
	return fault.Problems(wrong, "%s: %s", wrong[0].Path, wrong[0].Message).WithCode("input_unreachable")
}

// asGiven are the inputs of a run as somebody could give them to another.
func (s *Service) asGiven(ctx context.Context, old Run) (map[string]json.RawMessage, error) {
	var keys map[string][]string
	if err := json.Unmarshal(old.Inputs, &keys); err != nil {
		return nil, err
	}
	list, err := s.known.AddressesOf(ctx, old.Team, old.ID)
	if err != nil {
		return nil, err
	}
	known := map[string]addresses.Address{}
	for _, o := range list {
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
		}
		if inputs[name], err = json.Marshal(values); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}
