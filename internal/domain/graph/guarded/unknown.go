package guarded

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
)

// maxUnknown is how many unknown secrets are listed.
const maxUnknown = 500

// namesSecrets reports whether a definition names any secret. It may say so of
// one that does not.
func namesSecrets(definition []byte) bool { return bytes.Contains(definition, []byte(`"secrets"`)) }

// UnknownSecrets lists where a definition names secrets that are not there.
func UnknownSecrets(definition []byte, known func(name string) bool) (list []fault.Detail) {
	var d struct {
		Nodes []struct {
			ID      string   `json:"id"`
			Name    string   `json:"name"`
			Secrets []string `json:"secrets"`
		} `json:"nodes"`
	}
	if !namesSecrets(definition) || json.Unmarshal(definition, &d) != nil {
		return nil
	}
	for i, n := range d.Nodes {
		for j, name := range n.Secrets {
			if !known(name) && len(list) < maxUnknown {
				list = append(list, fault.Detail{
					Path:    "nodes[" + strconv.Itoa(i) + "].secrets[" + strconv.Itoa(j) + "]",
					Message: `the team has no secret called "` + shortened(name) + `": an admin can add it under Secrets`,
					Code:    graph.NoSuchSecret, Node: n.ID, Field: "secrets[" + strconv.Itoa(j) + "]",
					Subject: graph.Label(n.Name, n.ID),
				})
			}
		}
	}
	return list
}

// shortened makes what an author wrote fit to be quoted in a message.
func shortened(name string) string {
	const most = 60
	runes := []rune(strings.ToValidUTF8(name, "\uFFFD"))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}
