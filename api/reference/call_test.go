package reference_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/api/reference"
)

var curlLine = regexp.MustCompile(`(?s)<figcaption>curl</figcaption><pre tabindex="0"><code>(.*?)</code>`)

// calls are the arguments with which a shell would call curl, for each command
// line on the page.
func calls(t *testing.T, page string) (all [][]string) {
	t.Helper()
	var script bytes.Buffer
	script.WriteString("curl() { printf '%s\\0' \"$@\"; printf '\\1'; }\nMILLRACE=http://m TOKEN=t SESSION=s\n")
	for _, found := range curlLine.FindAllStringSubmatch(page, -1) {
		script.WriteString(html.UnescapeString(found[1]) + "\n")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-e")
	shell.Stdin, shell.Dir = &script, t.TempDir()
	shell.Env = []string{"PATH=/nonexistent"} // so that nothing else could run
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for one := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x01"), "\x01") {
		all = append(all, strings.Split(strings.TrimSuffix(one, "\x00"), "\x00"))
	}
	return all
}

// after is the argument that follows a flag.
func after(args []string, flag string) (string, bool) {
	for i := range len(args) - 1 {
		if args[i] == flag {
			return args[i+1], true
		}
	}
	return "", false
}

// Whoever copies a command line from the page calls what it stands beside.
func TestEveryCommandLineIsOneCall(t *testing.T) {
	t.Parallel()
	page := rendered(t, api.JSON)
	all := calls(t, page)
	if want := strings.Count(page, `<article class="operation"`); len(all) != want || want == 0 {
		t.Fatalf("%d command lines for %d operations", len(all), want)
	}
	for _, args := range all {
		addresses := 0
		for _, a := range args {
			if strings.HasPrefix(a, "http://m/") && !strings.ContainsAny(a, "{} \n") {
				addresses++
			}
		}
		if addresses != 1 {
			t.Errorf("%q has %d addresses", args, addresses)
		}
		kind, _ := after(args, "-H")
		if body, ok := after(args, "-d"); ok && strings.Contains(fmt.Sprint(args), "application/json") && !json.Valid([]byte(body)) {
			t.Errorf("%q sends %s, which is none: %s", args, kind, body)
		}
	}
}

func TestWhatACommandLineSends(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operation string
		want      []string
	}{
		"nothing":  {`"get":{}`, []string{"http://m/a/{id}"}},
		"a method": {`"delete":{}`, []string{"-X", "DELETE", "http://m/a/{id}"}},
		"what is named": {
			`"get":{"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}},{"name":"q","in":"query","required":true},{"name":"more","in":"query"},{"name":"X-A","in":"header","required":true}]}`,
			[]string{"http://m/a/?q="},
		},
		"JSON with quotes": {
			`"post":{"requestBody":{"content":{"application/json":{"example":{"a":"it's \"so\" $HOME ` + "`id`" + `"}}}}}`,
			[]string{"-X", "POST", "http://m/a/{id}", "-H", "Content-Type: application/json", "-d", `{"a":"it's \"so\" $HOME ` + "`id`" + `"}`},
		},
		"a form": {
			`"post":{"requestBody":{"content":{"application/x-www-form-urlencoded":{"example":{"grant":"a b&c=d'","n":7}}}}}`,
			[]string{"-X", "POST", "http://m/a/{id}", "-d", "grant=a+b%26c%3Dd%27", "-d", "n=7"},
		},
		"a form without an example": {`"post":{"requestBody":{"content":{"application/x-www-form-urlencoded":{}}}}`, []string{"-X", "POST", "http://m/a/{id}"}},
		"a file":                    {`"put":{"requestBody":{"content":{"multipart/form-data":{}}}}`, []string{"-X", "PUT", "http://m/a/{id}", "-F", "file=@paper.pdf"}},
		"by a token":                {`"get":{"security":[{"sessionToken":[]},{"apiToken":[]}]}`, []string{"http://m/a/{id}", "-H", "Authorization: Bearer t"}},
		"by a cookie":               {`"get":{"security":[{"sessionCookie":[]}]}`, []string{"http://m/a/{id}", "-b", "millrace_session=s"}},
		"by a token, or by nothing": {`"get":{"security":[{},{"sessionToken":[]}]}`, []string{"http://m/a/{id}"}},
	} {
		page := rendered(t, []byte(`{"paths":{"/a/{id}":{`+tt.operation+`}}}`))
		if all := calls(t, page); len(all) != 1 || strings.Join(all[0], "|") != strings.Join(tt.want, "|") {
			t.Errorf("%s: %q, want %q", name, all, tt.want)
		}
	}
}

func TestHowToSignInIsSaid(t *testing.T) {
	t.Parallel()
	for security, want := range map[string]string{
		`"security":[]`:             "No sign-in.",
		`"security":[{}]`:           "No sign-in.",
		`"summary":"as everywhere"`: "By api token.",
		`"security":[{"sessionToken":[]},{"apiToken":[]}]`: "By session token, api token.",
		`"security":[{},{"guestToken":[]}]`:                "Optional: guest token.",
	} {
		page := rendered(t, []byte(`{"security":[{"apiToken":[]}],"paths":{"/a":{"get":{`+security+`}}}}`))
		if !strings.Contains(page, "<dd>"+want+"</dd>") {
			t.Errorf("%s: the page does not say %q", security, want)
		}
	}
	page := rendered(t, []byte(`{"components":{"securitySchemes":{"sessionCookie":{"type":"apiKey","in":"cookie","name":"s"},"apiToken":{"type":"http","bearerFormat":"mr_"},"other":{"type":"http","bearerFormat":"JWT"}}}}`))
	for _, want := range []string{"<dt>session cookie</dt><dd><code>Cookie: s=…</code>", "<code>Authorization: Bearer mr_…</code>", "<dt>other</dt><dd><code>Authorization: Bearer …</code>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
}

// What the document says once for many is shown wherever it is referred to, and a
// reference to nothing shows nothing.
func TestWhatIsReferredToIsShown(t *testing.T) {
	t.Parallel()
	const doc = `{"paths":{"/a":{"post":{"operationId":"a",
		"parameters":[{"$ref":"#/components/parameters/Limit"},{"$ref":"#/components/parameters/None"},{"name":"bare","in":"query"}],
		"requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Envelope"},"examples":{"first":{"$ref":"#/components/examples/E"}}}}},
		"x-codes":{"409":["own_code","other_code"]},
		"responses":{
			"200":{"description":"Fine.","headers":{"X-Left":{"$ref":"#/components/headers/Left"}},"content":{"text/plain":{"example":"  a line\n"}}},
			"204":{"description":"Nothing."},
			"404":{"$ref":"#/components/responses/Gone"},"409":{"$ref":"#/components/responses/Gone"},"500":{"$ref":"#/components/responses/None"}}}}},
	"components":{
		"parameters":{"Limit":{"name":"limit","in":"query","required":true,"description":"How many.","schema":{"type":"integer","maximum":100}}},
		"headers":{"Left":{"description":"What is left."}},
		"responses":{"Gone":{"description":"It is gone.","content":{"application/json":{"example":{"code":"not_found"}}}}},
		"examples":{"E":{"value":{"data":{"n":7}}}},
		"schemas":{
			"Envelope":{"type":"object","properties":{"data":{"$ref":"#/components/schemas/Thing"}}},
			"Thing":{"allOf":[{"$ref":"#/components/schemas/Base"},{"type":"object","required":["n"],"properties":{"n":{"type":"integer","description":"A number."}}}]},
			"Base":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"lost":{"$ref":"#/components/schemas/None"}}}}}}`
	page := rendered(t, []byte(doc))
	for _, want := range []string{
		`<code>limit</code> <span class="must">required</span></th><td>query</td><td>integer</td><td>How many. <span class="rules">at most 100</span>`,
		`<code>bare</code></th><td>query</td><td>any</td>`,
		`<h4>Body</h4>`, `<a href="#schema-Thing">Thing</a>`, `<code>id</code> <span class="must">required</span>`, `<code>n</code> <span class="must">required</span>`, `<code>lost</code></th><td>any</td>`,
		`<code>X-Left</code> What is left.`, `<code>a line</code>`, `<th scope="row">404</th><td>It is gone.</td><td><code>not_found</code> </td>`,
		`<th scope="row">409</th><td>It is gone.</td><td><code>own_code</code> <code>other_code</code> </td>`, `<th scope="row">500</th><td></td><td></td>`,
		"&#34;n&#34;: 7",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	optional := strings.Replace(doc, `"required":true,"content"`, `"content"`, 1)
	if !strings.Contains(rendered(t, []byte(optional)), "<h4>Body (optional)</h4>") {
		t.Error("a body that may be left out is not told apart")
	}
}

// A document that cannot be shown says where it is wrong.
func TestADocumentThatCannotBeShownSaysWhere(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		``:                           "read the API description",
		`{"paths":[]}`:               "want an object",
		`{"paths":{"/a":[]}}`:        "/a: want an object",
		`{"paths":{"/a":{"get":7}}}`: "get /a",
		`{"paths":{"/a":{"get":{"parameters":{}}}}}`:                     "get /a",
		`{"components":{"schemas":{"A":{"properties":{"b":"text"}}}}}`:   "b: json",
		`{"components":{"schemas":{"A":{"type":7}}}}`:                    "A: json",
		`{"components":{"schemas":{"A":{"additionalProperties":"no"}}}}`: "A: json",
	} {
		if page, err := reference.Page([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %d bytes; want %q", doc, err, len(page), want)
		}
	}
}
