package pipelines

import "encoding/json"

// parameters are the values as an engine reads them from a file. What is null was
// not given, and stays what the pipeline makes of it.
func parameters(values []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(values, &all); err != nil {
		return nil, err
	}
	for name, value := range all {
		if string(value) == "null" {
			delete(all, name)
		}
	}
	return json.MarshalIndent(all, "", "  ")
}
