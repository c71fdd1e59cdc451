package environments

import "path"

// OfferPythons has uv know these interpreters instead of its own list, and find none
// on the machine.
func (s *Store) OfferPythons(list string) {
	s.added.files = map[string]string{"pythons.json": list}
	s.added.env = map[string]string{"UV_PYTHON_DOWNLOADS_JSON_URL": path.Join("/inputs", "pythons.json"), "UV_PYTHON_SEARCH_PATH": "/nowhere"}
}
