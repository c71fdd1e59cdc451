package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A client that is killed again and again goes on with what has arrived, and what
// the server has at the end is the file, once, and nothing beside it. The variable
// MILLRACE_TEST_UPLOAD_BYTES has it done with a file of another size.
func TestALargeUploadGoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	size := bytesFromEnv(t, "MILLRACE_TEST_UPLOAD_BYTES", 200<<20+1)
	eachStorage(t, func(t *testing.T, args []string, _ bool) { uploadAndKill(t, size, args) })
}

// largeFile is a file with holes in it, of which no two parts are the same.
func largeFile(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mark := make([]byte, 4096)
	for at := int64(0); at < size; at += 1 << 20 {
		rand.NewChaCha8([32]byte{byte(at >> 20), byte(at >> 28)}).Read(mark)
		if _, err := f.WriteAt(mark[:min(int64(len(mark)), size-at)], at); err != nil {
			t.Fatal(err)
		}
	}
}

func sumOf(t *testing.T, r io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// uploader is a person who uploads a file by the command line.
type uploader struct {
	*server
	home, file, token string
}

func (u uploader) begin() (*exec.Cmd, *bytes.Buffer, chan error) {
	c := exec.CommandContext(u.t.Context(), os.Args[0], "files", "upload", u.file, "--server", u.base)
	c.Env = append(os.Environ(), "BE_MILLRACE=1", "MILLRACE_TOKEN="+u.token, "HOME="+u.home, "XDG_CONFIG_HOME="+u.home)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	return c, &said, ended
}

// arrived is how many parts the server has, and of how many.
func (u uploader) arrived() (parts, count int) {
	notes, _ := filepath.Glob(filepath.Join(u.home, "*", "uploads", "*"))
	if len(notes) != 1 {
		return 0, 1
	}
	id, err := os.ReadFile(notes[0])
	if err != nil || len(id) == 0 {
		return 0, 1
	}
	if status, data, _ := u.call("GET", "/api/files/uploads/"+string(id), "", "Authorization", bearer(u.token)); status == 200 {
		return len(data["parts"].([]any)), int(data["partCount"].(float64))
	}
	return 0, 1
}

// untilKilled uploads until a share of the parts is there, and kills the client then;
// false: it was faster.
func (u uploader) untilKilled(share float64) bool {
	c, said, ended := u.begin()
	done := false
	await(u.t, "another part", func() bool {
		select {
		case err := <-ended:
			if done = true; err != nil {
				u.t.Fatalf("%v: %s", err, said)
			}
		default:
		}
		parts, count := u.arrived()
		return done || float64(parts) >= share*float64(count)
	})
	if !done {
		_ = c.Process.Kill()
		done = <-ended == nil // it had just finished
	}
	return !done
}

func uploadAndKill(t *testing.T, size int64, args []string) {
	home := t.TempDir()
	plans := filepath.Join(home, "plans.json")
	if err := os.WriteFile(plans, []byte(`{"plans":{"free":{"storageGb":1000}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	s := start(t, append([]string{"--data", data, "--plans-file", plans}, args...)...)
	_, cookie, _ := s.signUp("ada")
	token, _ := s.want(201, "POST", "/auth/api-tokens", `{"name":"cli","role":"member"}`, "Cookie", cookie)["token"].(string)
	u := uploader{s, home, filepath.Join(home, "reads.fq"), token}
	largeFile(t, u.file, size)
	kills := 0
	for kills < 5 && u.untilKilled(float64(kills+1)/6) {
		if kills++; len(partsLeft(t, data, args)) == 0 {
			t.Error("the parts of an upload that is not complete cannot be seen")
		}
	}
	if kills == 5 {
		_, said, ended := u.begin()
		if err := <-ended; err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	t.Logf("killed %d times", kills)
	list := s.files(token)
	if len(list) != 1 {
		t.Fatalf("%d files", len(list))
	}
	resp, err := http.Get(list[0]["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	f, err := os.Open(u.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if want := sumOf(t, f); sumOf(t, resp.Body) != want || list[0]["sha256"] != want {
		t.Error("other bytes have arrived")
	}
	if used := s.want(200, "GET", "/api/billing/credits", "", "Cookie", cookie)["storage"]; used.(map[string]any)["usedBytes"] != float64(size) {
		t.Errorf("%v", used)
	}
	if mb := s.residentMB(); mb > 200 {
		t.Errorf("it took %d MB", mb)
	}
	left, _ := filepath.Glob(filepath.Join(home, "*", "uploads", "*"))
	if left = append(left, partsLeft(t, data, args)...); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// partsLeft are what is kept of uploads that are not complete.
func partsLeft(t *testing.T, data string, args []string) (left []string) {
	t.Helper()
	if len(args) == 0 {
		err := filepath.WalkDir(filepath.Join(data, "objects", "parts"), func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				left = append(left, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	client, u := openBucket(t, args[1])
	for upload := range client.ListIncompleteUploads(t.Context(), u.Host, u.Query().Get("prefix"), true) {
		if upload.Err != nil {
			t.Fatal(upload.Err)
		}
		left = append(left, fmt.Sprintf("%s (%s)", upload.Key, upload.UploadID))
	}
	return left
}
