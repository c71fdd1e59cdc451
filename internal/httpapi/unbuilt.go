package httpapi

import (
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
)

// unbuilt is what the contract promises and nobody can use yet. Who may call
// it is decided already; the table shrinks to nothing.
func (a *API) unbuilt() []route {
	table := []route{

	}
	for i := range table {
		table[i].handle = notBuilt
	}
	return table
}

func notBuilt(*exchange) (answer, error) {
	return answer{}, &fault.Error{Kind: fault.KindNotBuilt, Message: "this part of the API is announced, but not built yet"}
}
