package job

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/json"
)

// Secrets never lie on the shared file system in clear: the job makes a key that
// lives in its memory alone, and the server answers with what only that key
// opens. The fence binds the answer to the attempt.

// private is the key of one job.
type private struct{ hpke.PrivateKey }

func newKey() (private, error) {
	k, err := kem().GenerateKey()
	return private{k}, err
}

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

func (k private) open(fence string, sealed []byte) (s Secrets, err error) {
	text, err := hpke.Open(k, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(fence), sealed)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// Seal closes secrets for the job with a key.
func Seal(key []byte, fence string, s Secrets) ([]byte, error) {
	public, err := kem().NewPublicKey(key)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(public, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(fence), text)
}
