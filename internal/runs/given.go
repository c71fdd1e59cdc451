package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// givenInputs are what a run was given, by the names of the workflow's inputs.
type givenInputs struct {
	elements map[string][]addresses.Element
	single   map[string]bool // inputs that take one file
	folder   map[string]bool // inputs that take a folder
	literal  bool
}

// Keys are those that there are without asking anybody: an address that is no pattern
// is its own.
func (g givenInputs) Keys() map[string][]string {
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

// Path is how a place is named to people.
func (g givenInputs) Path(p inputPlace) string {
	if len(g.elements[p.input]) == 1 {
		return "inputs." + p.input
	}
	return fmt.Sprintf("inputs.%s[%d]", p.input, p.at)
}

// Addresses are all of them, in the order of their inputs' names.
func (g givenInputs) Addresses() (list []addresses.Address, places []inputPlace) {
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
func readInputs(g *graph.Graph, inputs map[string]json.RawMessage, literal bool) (givenInputs, []fault.Detail) {
	var wrong []fault.Detail
	note := func(name, message string) {
		wrong = append(wrong, fault.Detail{Path: "inputs." + name, Message: message})
	}
	given := givenInputs{map[string][]addresses.Element{}, map[string]bool{}, map[string]bool{}, literal}
	for name, raw := range inputs {
		input, known := g.Input(name)
		if !known {
			note(name, "is not an input of this workflow")
			continue
		}
		list, err := addresses.Read(raw)
		switch {
		case err != nil:
			note(name, err.Error())
		case input.Directory && len(list) != 1:
			note(name, "takes one folder: the key of an output of a run, or an address as s3://bucket/folder/")
		case !input.Many && len(list) > 1:
			note(name, "takes one file")
		default:
			given.elements[name], given.single[name], given.folder[name] = list, !input.Many, input.Directory
		}
	}
	for _, input := range g.Inputs {
		if _, there := inputs[input.Name]; input.Required && !there {
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
	list, places := g.Addresses()
	for i, a := range list {
		problem := a.Problem()
		if g.folder[places[i].input] {
			problem = a.FolderProblem()
		}
		before, twice := seen[a.URL]
		switch {
		case problem != "":
		case twice && before != a:
			problem = "is given twice, with another connection or sha256"
		case a.SHA256 != "" && g.Pattern(a, places[i]):
			problem = "is a pattern, and one sha256 cannot be that of many files"
		}
		seen[a.URL] = a
		if problem != "" {
			wrong = append(wrong, fault.Detail{Path: g.Path(places[i]), Message: problem})
		}
	}
	if len(list) > addresses.MaxGiven && !g.literal {
		wrong = append(wrong, fault.Detail{Path: "inputs", Message: fmt.Sprintf("take at most %d addresses: use a pattern", addresses.MaxGiven)})
	}
	return wrong
}

// Pattern reports whether an address means many objects: in an input that takes one
// file a star is a star.
func (g givenInputs) Pattern(a addresses.Address, p inputPlace) bool {
	return !g.literal && !g.single[p.input] && a.Pattern()
}

// Expanded are the keys, with each address replaced by what it means.
func (g givenInputs) Expanded(meaning map[inputPlace][]string) map[string][]string {
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

// Unreachable says all at once which addresses cannot be read. One that is absent is
// not found, and one that the connection is not for is refused as such. The failure is
// temporary where all of them may be read later: their hosts, or the network, are away.
func (g givenInputs) Unreachable(list []addresses.Address, places []inputPlace, failed []error) error {
	var wrong []fault.Detail
	var absent error
	temporary := true
	for i, err := range failed {
		if err == nil {
			continue
		}
		known, ok := errors.AsType[*fault.Error](err)
		message := "it did not answer within 10 seconds"
		if ok {
			message = known.Message
		}
		temporary = temporary && fault.Temporary(err)
		path := g.Path(places[i])
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
	unreachable := fault.Problems(wrong, "%s", wrong[0].Sentence()).WithCode("input_unreachable")
	unreachable.Temporary = temporary
	return unreachable
}

// CheckKinds finds folders among the keys where files are taken, and the other way
// round.
func (g givenInputs) CheckKinds(inputs map[string][]string, folders map[string]bool) error {
	var wrong []fault.Detail
	for name, keys := range inputs {
		for _, key := range keys {
			switch is, wanted := folders[key] || addresses.IsFolder(key), g.folder[name]; {
			case is && !wanted:
				wrong = append(wrong, fault.Detail{Path: "inputs." + name, Message: "takes files, and this is a folder: declare the input with the type `directory`"})
			case !is && wanted:
				wrong = append(wrong, fault.Detail{Path: "inputs." + name, Message: "takes a folder, and this is a file"})
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Slice(wrong, func(i, j int) bool { return wrong[i].Path < wrong[j].Path })
	return fault.Problems(wrong, "%s", wrong[0].Sentence())
}
