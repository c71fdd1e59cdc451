package workflows

import (
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/workflows"
)

// RenameFolder answers POST /api/workflows/rename-folder.
func (a *API) RenameFolder(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.FolderRename](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	n, err := a.Workflows.RenameFolder(x.Context(), x.Caller, in.From, in.To)
	folder, _ := workflows.CheckedFolder(in.To)
	return kernel.Answer{Data: api.FolderRenamed{Folder: folder, Moved: n}}, err
}

// FindSteps answers GET /api/workflows/steps.
func (a *API) FindSteps(x *kernel.Exchange) (kernel.Answer, error) {
	words := strings.TrimSpace(x.Request.URL.Query().Get("q"))
	if n := utf8.RuneCountInString(words); n < 2 || n > 200 || !kernel.Printable(words) {
		d := fault.Detail{Path: "q", Message: "needs 2 to 200 characters in one line"}
		return kernel.Answer{}, fault.Problems([]fault.Detail{d}, "%s", kernel.Sentence(d))
	}
	list, err := a.Workflows.Steps(x.Context(), x.Caller, words)
	out := make([]api.FoundStep, len(list))
	for i, s := range list {
		out[i] = api.FoundStep{WorkflowID: string(s.Workflow), WorkflowName: s.WorkflowName, NodeID: s.Node, Name: s.Name}
	}
	return kernel.Answer{Data: out}, err
}
