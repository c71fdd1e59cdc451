package sharedfolder

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
)

// sealer closes what only servers may read or write, in folders that tasks may reach.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{aead}, err
}

// seal closes a value. It can be opened under the same name alone.
func (s *sealer) seal(name string, value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return s.aead.Seal(nil, nil, text, []byte(name)), err
}

func (s *sealer) open(name string, sealed []byte, value any) error {
	text, err := s.aead.Open(nil, nil, sealed, []byte(name))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}
