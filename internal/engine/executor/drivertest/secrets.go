package drivertest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
)

// secrets shows nobody but the command what it was given, neither in its log
// nor in what lies on disk, for this driver and for the next.
func secrets(t *testing.T, b *Fixture, make Maker) {
	const value = "correct-horse-battery\nstaple \"quoted\""
	s := b.Spec(t, `printf '%s\n' "$SECRET_A"; printf 'x%s' "$SECRET_A" | base64 -w 0; echo; [ ${#SECRET_A} = 37 ]
printf %s "${SECRET_A:0:9}"; while [ ! -e go ]; do sleep 0.01; done; printf '%s!\n' "${SECRET_A:9}" # dummy: printenv=SECRET_A await=go`)
	s.Env, s.Secrets = map[string]string{"SECRET_A": value}, []string{value}
	h := b.Submit(t, s)
	Eventually(t, func() bool { return strings.HasPrefix(b.Log(t, h, 0), "***\n") }, func() string { return b.Log(t, h, 0) })
	search(t, b.Folder, "correct-horse")
	b.Leave()
	b.Subject = make(t, b.Folder)
	b.LetGo(t, s)
	b.want(t, b.End(t, h), executor.ExitedZero)
	search(t, b.Folder, "correct-horse")
	log := b.Log(t, h, 0)
	for _, part := range []string{"horse", "correct", "quoted", "Y29ycmVjdC1ob3Jz", "b3JyZWN0LWhvcnNl"} {
		if strings.Contains(log, part) {
			t.Errorf("the log is %q", log)
		}
	}
}

// search looks for a text in every file of a folder.
func search(t *testing.T, folder, text string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // it may go while we look
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds the secret", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
