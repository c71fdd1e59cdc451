package stripe

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzSignature sends arbitrary headers with a payload: what is accepted was
// signed with the secret, at the very time that we read from the header.
func FuzzSignature(f *testing.F) {
	payload := envelope("payout.paid", `{}`)
	good := sign(payload, now)
	for _, seed := range []string{
		good, "", "t=", "v1=", ",", "t=1,v1=00", good + ",t=1", "t=1," + good, strings.ToUpper(good), " " + good,
		fmt.Sprintf("t=%d,v0=00,v1=zz,%s", now.Unix(), good), "t=99999999999999999999," + good,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if _, err := account().Event(payload, header, now); err != nil {
			return
		}
		_, mark, _ := strings.Cut(sign(payload, signedAt(header)), ",")
		if !strings.Contains(strings.ToLower(header), mark) {
			t.Errorf("accepted %q, which was not signed at the time it names", header)
		}
	})
}
