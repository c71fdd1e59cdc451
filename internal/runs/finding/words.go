// Package finding is how people find runs again: the words that a run is found
// by, and the filters that they keep.
package finding

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/search"
	"github.com/millrace/millrace/internal/runs"
)

// Words are what a run is found by. What people know it by comes first: it is
// also found by the middle of those words.
func Words(r runs.Run) []string {
	message := r.ErrorMessage
	if r.Status == lifecycle.Completed {
		message = "" // as it is shown to nobody
	}
	words := search.Words(
		r.Name, string(r.ID), strings.Join(r.Tags, " "), r.WorkflowName, r.Engine, string(r.ErrorCode), message, r.Starter.Name, r.Note, parameters(r.Parameters),
	)
	return append(search.Endings(words), search.Number(strconv.FormatInt(r.Number, 10)))
}

// parameters are the names and values of a JSON object, which may have been cut.
func parameters(object []byte) string {
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return b.String()
		}
		switch v := token.(type) {
		case string:
			b.WriteString(v + " ")
		case json.Number:
			b.WriteString(v.String() + " ")
		}
	}
}
