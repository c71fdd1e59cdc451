package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
)

const partOfShelf = 8 << 20

// partShelf takes one file in parts.
type partShelf struct {
	size int64
	take func(number int, address string) int // the status of a part, asked when it begins

	mu     sync.Mutex
	signed [][]int // what was asked for together
	begun  []int
	bytes  int64 // of parts that were taken
}

func (s *partShelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/files/uploads":
		clitest.Answer(w, 201, fmt.Sprintf(`{"success":true,"data":{"uploadId":"upl_1","key":"k","partSize":%d,"partCount":%d,"expiresAt":"2099-01-01T00:00:00.000Z"}}`,
			partOfShelf, (s.size+partOfShelf-1)/partOfShelf))
	case strings.HasSuffix(r.URL.Path, "/parts"):
		clitest.Answer(w, 200, `{"success":true,"data":[`+s.sign(r)+`]}`)
	case strings.HasSuffix(r.URL.Path, "/complete"):
		var said struct{ SHA256 string }
		_ = json.NewDecoder(r.Body).Decode(&said)
		clitest.Answer(w, 200, fmt.Sprintf(`{"success":true,"data":{"key":"k","name":"f","source":"upload","size":%d,"sha256":%q}}`, s.size, said.SHA256))
	default:
		w.WriteHeader(s.part(r))
	}
}

func (s *partShelf) sign(r *http.Request) string {
	var asked struct{ Numbers []int }
	_ = json.NewDecoder(r.Body).Decode(&asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = append(s.signed, asked.Numbers)
	var list []string
	for _, n := range asked.Numbers {
		list = append(list, fmt.Sprintf(`{"number":%d,"size":1,"url":"http://%s/put/%d/%d","method":"PUT","expiresAt":"2099-01-01T00:00:00.000Z"}`, n, r.Host, n, len(s.signed)))
	}
	return strings.Join(list, ",")
}

func (s *partShelf) part(r *http.Request) int {
	var number, asked int
	_, _ = fmt.Sscanf(r.URL.Path, "/put/%d/%d", &number, &asked)
	s.mu.Lock()
	s.begun = append(s.begun, number)
	s.mu.Unlock()
	status := s.take(number, r.URL.Path)
	n, err := io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && status == http.StatusOK {
		s.bytes += n
	}
	return status
}

func (s *partShelf) upload(t *testing.T) {
	t.Helper()
	s.size = 8*partOfShelf + 1
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, s.size); err != nil {
		t.Fatal(err)
	}
	if _, err := clitest.New(t).Session(t, clitest.Serve(t, s.ServeHTTP)).UploadKeys([]string{path}); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes != s.size {
		t.Errorf("%d of %d bytes have arrived", s.bytes, s.size)
	}
}

// Where one part takes long, others go beside it: here none is read before four are there.
func TestASlowLineIsSharedByParts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	waiting, four := 0, make(chan struct{})
	s := &partShelf{take: func(int, string) int {
		mu.Lock()
		if waiting++; waiting == 4 {
			close(four)
		}
		mu.Unlock()
		<-four
		return http.StatusOK
	}}
	s.upload(t)
	if s.begun[0] != 1 || len(s.signed) != 1 {
		t.Errorf("part %d was first, and %d requests were for addresses", s.begun[0], len(s.signed))
	}
}

// An address that was asked for with others, and has expired when its turn comes, is asked
// for again by itself.
func TestThePartOfAnExpiredAddressIsSentToAnother(t *testing.T) {
	t.Parallel()
	s := &partShelf{take: func(number int, address string) int {
		if number == 3 && address == "/put/3/1" {
			return http.StatusForbidden
		}
		return http.StatusOK
	}}
	s.upload(t)
	if len(s.signed) != 2 || len(s.signed[0]) != 9 || len(s.signed[1]) != 1 || s.signed[1][0] != 3 {
		t.Errorf("addresses were asked for %v", s.signed)
	}
}
