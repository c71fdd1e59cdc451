package taskenv

import (
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/outputs"
)

// ProgressFile is where a command may say how far it has come, among its
// temporary files.
const ProgressFile = "millrace-progress"

// ProgressOf reads what a command says of itself: "done/total".
func ProgressOf(dir string) (done, total float64, ok bool) {
	f, err := outputs.Open(filepath.Join(dir, shim.TempFolder), ProgressFile)
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	text := make([]byte, 64)
	n, _ := io.ReadFull(f, text)
	return ParseProgress(string(text[:n]))
}

// ParseProgress reads what such a file says.
func ParseProgress(text string) (done, total float64, ok bool) {
	before, after, found := strings.Cut(strings.TrimSpace(text), "/")
	done, err1 := strconv.ParseFloat(strings.TrimSpace(before), 64)
	total, err2 := strconv.ParseFloat(strings.TrimSpace(after), 64)
	return done, total, found && err1 == nil && err2 == nil && done >= 0 && total > 0 && done <= total
}

// Lines is a file with one path a line; without paths it is empty.
func Lines(paths []string) []byte {
	var b []byte
	for _, p := range paths {
		b = append(append(b, p...), '\n')
	}
	return b
}
