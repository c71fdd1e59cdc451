package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A client that is killed again and again goes on with what has arrived, and what
// the server has at the end is the file, once.
func TestALargeUploadGoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	eachStorage(t, func(t *testing.T, args []string, _ bool) { uploadAndKill(t, args) })
}

func uploadAndKill(t *testing.T, args []string) {
	s := start(t, append([]string{"--data", t.TempDir()}, args...)...)
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string)
	home := t.TempDir()
	file := filepath.Join(home, "reads.fq")
	text := make([]byte, 200<<20+1)
	rand.NewChaCha8([32]byte{}).Read(text)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	upload := func() (*exec.Cmd, *bytes.Buffer, chan error) {
		c := exec.CommandContext(t.Context(), os.Args[0], "files", "upload", file, "--server", s.base)
		c.Env = append(os.Environ(), "BE_MILLRACE=1", "MILLRACE_TOKEN="+token, "HOME="+home, "XDG_CONFIG_HOME="+home)
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		return c, &said, ended
	}
	arrived := func() int {
		notes, _ := filepath.Glob(filepath.Join(home, "*", "uploads", "*"))
		if len(notes) != 1 {
			return 0
		}
		id, err := os.ReadFile(notes[0])
		if err != nil || len(id) == 0 {
			return 0
		}
		if status, data, _ := s.call("GET", "/api/files/uploads/"+string(id), "", "Cookie", cookie); status == 200 {
			return len(data["parts"].([]any))
		}
		return 0
	}
	done := false
	for before := 0; before < 4 && !done; before = arrived() {
		c, said, ended := upload()
		await(t, "another part", func() bool {
			select {
			case err := <-ended: // it was faster than we
				if done = true; err != nil {
					t.Fatalf("%v: %s", err, said)
				}
			default:
			}
			return done || arrived() > before
		})
		if !done {
			_ = c.Process.Kill()
			<-ended
		}
	}
	if !done {
		_, said, ended := upload()
		if err := <-ended; err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	list := s.files(token)
	if len(list) != 1 {
		t.Fatalf("%d files", len(list))
	}
	resp, err := http.Get(list[0]["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, resp.Body); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(text); !bytes.Equal(h.Sum(nil), want[:]) || list[0]["sha256"] != hex.EncodeToString(want[:]) {
		t.Error("other bytes have arrived")
	}
	if used := s.want(200, "GET", "/api/billing/credits", "", "Cookie", cookie)["storage"]; used.(map[string]any)["usedBytes"] != float64(len(text)) {
		t.Errorf("%v", used)
	}
	left, _ := filepath.Glob(filepath.Join(home, "*", "uploads", "*"))
	if len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}
