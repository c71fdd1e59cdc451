package environments

import (
	"context"
	"path"
)

// OfferPythons has uv know these interpreters instead of its own list, and find none
// on the machine.
func (s *Store) OfferPythons(list string) {
	s.added.files = map[string]string{"pythons.json": list}
	s.added.env = map[string]string{"UV_PYTHON_DOWNLOADS_JSON_URL": path.Join("/inputs", "pythons.json"), "UV_PYTHON_SEARCH_PATH": "/nowhere"}
}

// OwnIndex is the index that pip asks where it is told nothing.
func (s *Store) OwnIndex(ctx context.Context) (string, error) { return s.ownIndex(ctx) }

// FailAtOnce has uv ask for nothing a second time.
func (s *Store) FailAtOnce() { s.added.env = map[string]string{"UV_HTTP_RETRIES": "0"} }

// PlaceChannels finds out where the channels are that have no address.
func (s *Store) PlaceChannels(ctx context.Context) error {
	return (&build{store: s, team: "a", unseen: true}).placeChannels(ctx)
}

// Unplaced are the channels that have no address.
func (s *Store) Unplaced() []string { return s.channels.Unplaced() }
