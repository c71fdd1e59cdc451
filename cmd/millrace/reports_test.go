package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A report comes from us with our headers, also where its bytes lie in a bucket. When its
// run is deleted, the addresses that were given out lead nowhere at once.
func TestAReportIsServedByUsWhereverItLies(t *testing.T) {
	eachStorage(t, func(t *testing.T, args []string, _ bool) {
		s := start(t, append(args, "--data", t.TempDir())...)
		token, _, _ := s.signUp("ada")
		w := s.workflow(token, `{"nodes":[{"id":"a","command":"echo '<b>hi</b>' > page.html","outputs":{"o":{"path":"page.html"}}}]}`)
		id := s.run(token, `{"workflowId":"`+w+`"}`)
		s.ended(token, id)
		body := s.want(200, "GET", "/api/runs/"+id+"/outputs", "", "Authorization", bearer(token))
		address, _ := body["data"].([]any)[0].(map[string]any)["reportUrl"].(string)
		if !strings.HasPrefix(address, s.base+"/reports/") {
			t.Fatalf("%v", body)
		}
		resp, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || string(text) != "<b>hi</b>\n" || !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "sandbox allow-scripts; default-src 'none';") {
			t.Errorf("%q, %v, %v", text, err, resp.Header)
		}
		file := body["data"].([]any)[0].(map[string]any)["url"].(string)
		if got := get(t, file); got != "<b>hi</b>\n" {
			t.Errorf("%q", got)
		}
		s.want(200, "DELETE", "/api/runs/"+id, "", "Authorization", bearer(token))
		for _, address := range []string{file, address} {
			resp, err := http.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 404 {
				t.Errorf("%s: %d", address, resp.StatusCode)
			}
		}
	})
}
