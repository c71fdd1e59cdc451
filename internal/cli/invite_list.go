package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// longestList is how long a list may be that the server takes, in bytes.
const longestList = 500_000

// inviteList has the server invite everyone in the file, and fails if an address is wrong.
func (c *inviteMember) inviteList(w screen.Console, s *session.Session) error {
	text, err := readList(w, c.File)
	if err != nil {
		return err
	}
	role := api.Role(c.Role)
	r, err := s.API.InviteMembersWithResponse(s.Ctx, nil, api.InvitationList{List: text, Role: &role})
	if err != nil {
		return s.Explain(err)
	}
	list, failed, invited := r.JSON200.Data.Results, 0, 0
	for _, one := range list {
		switch one.Result {
		case api.InvitationResultResultWrong, api.InvitationResultResultLimited:
			failed++
		case api.InvitationResultResultInvited:
			invited++
		}
	}
	err = s.Emit(list, func() {
		rows := [][]string{{"LINE", "ADDRESS", "ROLE", "RESULT"}}
		for _, one := range list {
			result := string(one.Result)
			if one.Message != nil {
				result += ": " + *one.Message
			}
			rows = append(rows, []string{strconv.Itoa(one.Line), screen.Clean(one.Email), string(one.Role), screen.Clean(result)})
		}
		s.Table(rows)
		s.Note("%d of %d invited; emails are sent as the limits allow, which can take days for long lists", invited, len(list))
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d addresses could not be invited", failed, len(list))
	}
	return err
}

func readList(w screen.Console, path string) (string, error) {
	in := w.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, longestList+1))
	if err == nil && len(text) > longestList {
		err = fmt.Errorf("%s has more than %d bytes: send it in parts", path, longestList)
	}
	return string(text), err
}
