package workflows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/definitionfile"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/license"
	"github.com/millrace/millrace/internal/domain/source"
)

// Followed is the repository that a workflow's definition comes from. It is
// changed there and nowhere else.
type Followed struct {
	source.Source
	Commit      string    // that the definition is of
	RefreshedAt time.Time // when somebody last looked for another
	Problem     string    // why that failed
}

// FileWanted is the first of several files, if it is no larger.
type FileWanted struct {
	Names    []string
	MaxBytes int64
}

// ErrNoFile is behind the fault of a host that has none of the files.
var ErrNoFile = errors.New("there is no such file")

// Repositories knows Git hosts. What is the repository's fault, and the host's,
// is foreseen and has no code.
type Repositories interface {
	// Latest is the commit that a source stands for now.
	Latest(ctx context.Context, team ids.Team, s source.Source) (commit string, err error)
	// File reads a file of the folder of a source at a commit. That it is not
	// there is fault.KindInvalid because of ErrNoFile.
	File(ctx context.Context, team ids.Team, s source.Source, commit string, f FileWanted) (name string, text []byte, err error)
}

// FollowStore keeps what workflows follow.
type FollowStore interface {
	// SetRefreshProblem notes why a refresh failed.
	SetRefreshProblem(ctx context.Context, team ids.Team, id ids.Workflow, problem string, now time.Time) error
	// StopFollowing has a workflow follow nothing any more. One that follows
	// nothing stays as it is.
	StopFollowing(ctx context.Context, w Workflow) error
	// TakeDueRefresh takes the workflow whose trigger was called first, and
	// leaves it to others from a time on. It is not one of the teams that are
	// busy, of which there are MaxBusyTeams at most. None is fault.KindNotFound.
	TakeDueRefresh(ctx context.Context, now, again time.Time, busy []ids.Team) (DueRefresh, error)
	// EndRefresh says that it was done. Whoever called since has it done again,
	// after RefreshPause.
	EndRefresh(ctx context.Context, d DueRefresh, now time.Time) error
}

// FollowGit says who knows Git hosts, and the memory to read what they send in,
// before the first request.
func (s *Service) FollowGit(r Repositories, m *bounds.Memory) { s.repositories, s.memory = r, m }

// fetchTime is how long somebody waits for a repository. Fetching goes on
// without them.
const fetchTime = 60 * time.Second

// version is a definition as it is in Git.
type version struct {
	commit string
	file   definitionfile.File
	graph  *graph.Graph // nil: that of the commit which was known

	release func() // gives back the memory of the graph
}

// latest reads what a repository holds now, unless that is known.
func (s *Service) latest(ctx context.Context, team ids.Team, from source.Source, known string) (v version, err error) {
	v.release = func() {}
	if s.repositories == nil {
		return v, fault.Unavailable("this server fetches nothing from Git")
	}
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if v.commit, err = s.repositories.Latest(limited, team, from); err == nil && v.commit != known {
		err = s.define(limited, &v, team, from)
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return v, fault.Unavailable("the repository takes longer than a minute to fetch, and is still being fetched: try again in a moment").WithCode("git_fetching")
	}
	return v, unreachable(err)
}

// unreachable is what somebody reads who asked for a repository.
func unreachable(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Code != "" {
		return err
	}
	switch known.Kind {
	case fault.KindNotFound: // it is theirs, or another team's
		return gitProblem("git.connection", "the team has no such connection")
	case fault.KindInvalid, fault.KindUnavailable:
		return gitProblem("git", known.Message).WithCause(known.Cause)
	}
	return err
}

func gitProblem(path, message string) *fault.Error {
	return fault.Problems([]fault.Detail{{Path: path, Message: message}}, "the workflow could not be read from Git: %s", message).WithCode("git_unreachable")
}

// define reads the definition of a version's commit.
func (s *Service) define(ctx context.Context, v *version, team ids.Team, from source.Source) error {
	in := folder{s.repositories, team, from, v.commit}
	name, text, err := in.read(ctx, definitionfile.Names, definitionfile.MaxBytes)
	if err == nil && name == "" {
		return s.definePipeline(ctx, v, in)
	}
	if err != nil {
		return err
	}
	read, err := s.memory.Reserve(len(text))
	if err != nil {
		return err
	}
	v.file, err = definitionfile.Read(name, text)
	read()
	return s.parse(v, in, name, err)
}

// parse makes the graph of what a file was read as.
func (s *Service) parse(v *version, in folder, name string, err error) error {
	invalid := func(wrong []fault.Detail) error {
		return fault.Problems(wrong, "%s at commit %s is not a valid workflow: %s", name, short(v.commit), first(wrong)).WithCode("git_invalid_definition")
	}
	if err != nil {
		return invalid([]fault.Detail{{Path: name, Message: err.Error()}})
	}
	var message string
	if v.file.License, message = license.Checked(v.file.License); message != "" {
		return invalid([]fault.Detail{{Path: "license", Message: message}})
	}
	release, err := s.memory.Reserve(len(v.file.Definition)) // aliases have unfolded
	if err != nil {
		return err
	}
	g, malformed := graph.Parse(v.file.Definition)
	if len(malformed) == 0 {
		g, malformed = withOwnCode(g, in.from, v.commit)
	}
	if len(malformed) > 0 {
		release()
		return invalid(malformed)
	}
	v.graph, v.release = g, release
	return nil
}

// short is a commit as people write it.
func short(commit string) string { return commit[:min(7, len(commit))] }

// withOwnCode has commands that mention SOURCE_DIR find the folder that the
// definition lies in, at its commit, unless the definition says where its code
// is.
func withOwnCode(g *graph.Graph, from source.Source, commit string) (*graph.Graph, []graph.Problem) {
	own := source.Source{}
	switch {
	case g.Source != nil && g.Source.Git != "":
		return g, nil
	case g.Source != nil:
		own = *g.Source
	case !slices.ContainsFunc(g.Nodes, (*graph.Node).UsesSource):
		return g, nil
	}
	own.Git, own.Connection = from.Git, from.Connection
	own.Path = strings.Trim(path.Join(from.Path, own.Path), "/")
	if own.Ref == "" {
		own.Ref = commit
	}
	definition, err := setSource(g.JSON(), own)
	if err != nil {
		return nil, []graph.Problem{{Path: "source", Message: err.Error()}}
	}
	return graph.Parse(definition)
}

// setSource is a workflow's definition with its code in the repository that it
// follows. What else the author wrote as its source stays.
func setSource(definition []byte, followed source.Source) ([]byte, error) {
	var workflow, fields map[string]json.RawMessage
	if err := json.Unmarshal(definition, &workflow); err != nil {
		return nil, err
	}
	repository, err := json.Marshal(followed)
	if err != nil {
		return nil, err
	}
	for _, part := range [][]byte{workflow["source"], repository} {
		if part == nil {
			continue
		}
		if err := json.Unmarshal(part, &fields); err != nil {
			return nil, err
		}
	}
	if workflow["source"], err = json.Marshal(fields); err != nil {
		return nil, err
	}
	return json.Marshal(workflow)
}

// checkedSource finds what is wrong with where a repository is said to be.
func checkedSource(s source.Source) error {
	var wrong []fault.Detail
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: "git." + path, Message: message}) }
	if _, err := s.Address(); err != nil || len(s.Git) > source.MaxAddress {
		if err == nil {
			err = fmt.Errorf("has more than %d characters", source.MaxAddress)
		}
		note("git", err.Error())
	}
	if s.Ref != "" && (!source.ValidRef(s.Ref) || len(s.Ref) > source.MaxRef) {
		note("ref", "is not the name of a branch, a tag or a commit")
	}
	if s.Path != "" && (!source.ValidFolder(s.Path) || len(s.Path) > source.MaxPath) {
		note("path", "is not the path of a folder in the repository, such as analysis/scripts")
	}
	if len(wrong) > 0 {
		return fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	return nil
}

// fill completes a new workflow with what its repository says, for which memory
// is set aside until it is released.
func (s *Service) fill(ctx context.Context, team ids.Team, in *New) (f *Followed, release func(), err error) {
	if in.Git == nil {
		return nil, func() {}, nil
	}
	if in.Definition != nil {
		d := fault.Detail{Path: "definition", Message: "comes from Git: leave it out, or leave out git"}
		return nil, nil, fault.Problems([]fault.Detail{d}, "%s %s", d.Path, d.Message)
	}
	if err := checkedSource(*in.Git); err != nil {
		return nil, nil, err
	}
	v, err := s.latest(ctx, team, *in.Git, "")
	if err != nil {
		return nil, nil, err
	}
	in.Definition = v.graph.JSON()
	if in.Name == "" {
		in.Name = v.file.Name
	}
	if in.Name == "" {
		in.Name = repositoryName(*in.Git)
	}
	if in.Description == "" {
		in.Description = v.file.Description
	}
	if in.License == "" {
		in.License = v.file.License
	}
	return &Followed{Source: *in.Git, Commit: v.commit, RefreshedAt: s.now()}, v.release, nil
}

func repositoryName(s source.Source) string {
	return strings.TrimSuffix(path.Base(strings.TrimRight(s.Git, "/")), ".git")
}

// errFollowsGit refuses a change of a definition that is changed elsewhere.
func errFollowsGit(id ids.Workflow) error {
	return fault.Conflict("this workflow follows a Git repository: change its definition there, or POST /api/workflows/%s/detach to edit it here", id).WithCode("follows_git")
}

func errNotFromGit() error {
	return fault.Conflict("this workflow does not come from Git").WithCode("not_from_git")
}

// Refresh makes the definition what it is in Git now, as a revision that the
// caller stands behind. Where nothing has changed there is none.
func (s *Service) Refresh(ctx context.Context, caller access.Caller, id ids.Workflow) (Workflow, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Workflow{}, err
	}
	w, err := s.refresh(ctx, caller.Team, id, access.Author{User: caller.User})
	if err == nil && !w.Confirmed {
		_, err = s.stores.Revisions.ConfirmRevision(ctx, caller.Team, id, w.Revision, w.Fingerprint, false)
		w.Confirmed = err == nil
	}
	return s.looked(ctx, w, err)
}

// errMoved is about a workflow that somebody else has refreshed meanwhile.
var errMoved = errors.New("the workflow was refreshed meanwhile")

func (s *Service) refresh(ctx context.Context, team ids.Team, id ids.Workflow, by access.Author) (Workflow, error) {
	for {
		w, err := s.stores.Workflows.Workflow(ctx, team, id)
		if err != nil {
			return w, err
		}
		if w.Git == nil {
			return w, errNotFromGit()
		}
		v, err := s.latest(ctx, team, w.Git.Source, w.Git.Commit)
		problem := ""
		if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind == fault.KindInvalid {
			problem = known.Message
		}
		switch {
		case err != nil && problem == "":
			return w, err
		case err != nil || v.graph == nil: // there is nothing, or nothing new
			w.Git.Problem, w.Git.RefreshedAt = problem, s.now()
			return w, cmp.Or(s.stores.Follow.SetRefreshProblem(ctx, team, id, problem, w.Git.RefreshedAt), err)
		}
		before := w.Git.Commit
		w, err = s.save(ctx, saving{team: team, id: id, by: by, fromGit: true}, func(w *Workflow) (*graph.Graph, string, error) {
			if w.Git == nil {
				return nil, "", errNotFromGit()
			}
			if w.Git.Commit != before && w.Git.Commit != v.commit {
				return nil, "", errMoved
			}
			w.Git = &Followed{Source: w.Git.Source, Commit: v.commit, RefreshedAt: s.now()}
			if v.file.License != "" {
				w.License = v.file.License
			}
			return v.graph, "commit " + short(v.commit), nil
		})
		v.release()
		if !errors.Is(err, errMoved) {
			return w, err
		}
	}
}

// Detach has a workflow follow Git no more: from now on it is edited here.
func (s *Service) Detach(ctx context.Context, caller access.Caller, id ids.Workflow) (Workflow, error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return Workflow{}, err
	}
	w, err := s.stores.Workflows.Workflow(ctx, caller.Team, id)
	if err != nil {
		return w, err
	}
	if w.Git == nil {
		return w, errNotFromGit()
	}
	g, _ := graph.Salvage(w.Definition)
	w.Git, w.Source, w.UpdatedAt = nil, g.Source, s.now()
	err = s.stores.Follow.StopFollowing(ctx, w)
	return s.looked(ctx, w, err)
}
