package builtin

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"
)

// Passwords hashes passwords with argon2id. It works on as many at a time as
// there are cores, so that a burst of sign-ins costs time and not memory.
type Passwords struct {
	memoryKiB uint32
	passes    uint32
	turn      chan struct{}
	nobody    string // compared with when there is no account, to take as long
	made      atomic.Int64

	mu   sync.Mutex
	tidy *time.Timer
}

// NewPasswords has the strength that OWASP recommends: 19 MiB, two passes.
func NewPasswords() *Passwords { return NewPasswordsOfCost(19*1024, 2) }

// NewPasswordsOfCost sets the strength of new hashes; old ones keep theirs.
func NewPasswordsOfCost(memoryKiB, passes uint32) *Passwords {
	p := &Passwords{memoryKiB: memoryKiB, passes: passes, turn: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
	p.nobody = p.format(make([]byte, saltLen), make([]byte, hashLen))
	return p
}

const (
	saltLen = 16
	hashLen = 32
)

// Hash makes the text to store, in the usual PHC form.
func (p *Passwords) Hash(password string) string {
	salt := make([]byte, saltLen)
	rand.Read(salt)
	return p.format(salt, p.key(password, salt, p.memoryKiB, p.passes))
}

// Match reports whether the password made the hash. An empty hash (no such
// account, or one without a password) never matches and takes as long.
func (p *Passwords) Match(hash, password string) (bool, error) {
	exists := hash != ""
	if !exists {
		hash = p.nobody
	}
	memory, passes, salt, want, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	same := subtle.ConstantTimeCompare(p.key(password, salt, memory, passes), want) == 1
	return same && exists, nil
}

// Made is how many hashes were made so far, to store or to compare with.
func (p *Passwords) Made() int64 { return p.made.Load() }

func (p *Passwords) key(password string, salt []byte, memoryKiB, passes uint32) []byte {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	defer p.tidyUp()
	p.made.Add(1)
	return argon2.IDKey([]byte(password), salt, passes, memoryKiB, 1, hashLen)
}

// quiet is how long nobody must sign in before the memory of the last hash goes
// back to the system: it is many times what else an idle server holds.
const quiet = 5 * time.Second

func (p *Passwords) tidyUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tidy == nil {
		p.tidy = time.AfterFunc(quiet, debug.FreeOSMemory)
		return
	}
	p.tidy.Reset(quiet)
}

func (p *Passwords) format(salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, p.memoryKiB, p.passes,
		b64.EncodeToString(salt), b64.EncodeToString(key))
}

var errHashForm = errors.New("a stored password hash is not in argon2id's form")

func parseHash(hash string) (memory, passes uint32, salt, key []byte, err error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return 0, 0, nil, nil, errHashForm
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &memory, &passes); err != nil {
		return 0, 0, nil, nil, errHashForm
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	key, keyErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || keyErr != nil || len(key) != hashLen {
		return 0, 0, nil, nil, errHashForm
	}
	return memory, passes, salt, key, nil
}
