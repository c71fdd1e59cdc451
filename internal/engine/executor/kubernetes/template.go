package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is an object as JSON has it.
type object = map[string]any

// mergeKeys are the lists of a pod template whose items a strategic merge patch finds
// by a field of theirs. It replaces all other lists. Kubernetes' own code for such
// patches links the description of all its API.
var mergeKeys = map[string]string{
	"containers": "name", "initContainers": "name", "ephemeralContainers": "name", "env": "name", "volumes": "name", "imagePullSecrets": "name",
	"resourceClaims": "name", "schedulingGates": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath",
	"hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "ownerReferences": "uid",
}

// What a patch may say beside values.
const (
	directive  = "$patch"
	retainKeys = "$retainKeys"
)

// merge applies a strategic merge patch to an object.
func merge(original, patch object) (object, error) {
	switch patch[directive] {
	case nil:
	case "replace":
		original = nil
	case "delete":
		return object{}, nil
	default:
		return nil, fmt.Errorf("%s must be replace or delete", directive)
	}
	result := maps.Clone(original)
	if result == nil {
		result = object{}
	}
	if kept, ok := patch[retainKeys].([]any); ok {
		maps.DeleteFunc(result, func(name string, _ any) bool { return !slices.Contains(kept, any(name)) })
	}
	for name, value := range patch {
		switch {
		case name == directive, name == retainKeys:
		case strings.HasPrefix(name, "$"):
			return nil, fmt.Errorf("%s is not supported", name)
		case value == nil:
			delete(result, name)
		default:
			var err error
			if result[name], err = mergeValue(name, result[name], value); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}

func mergeValue(name string, original, patch any) (any, error) {
	switch patch := patch.(type) {
	case object:
		from, _ := original.(object)
		return merge(from, patch)
	case []any:
		if key := mergeKeys[name]; key != "" {
			from, _ := original.([]any)
			return mergeList(name, key, from, patch)
		}
	}
	return patch, nil
}

// mergeList merges items that have the same key, and adds the others at the end.
func mergeList(name, key string, original, patch []any) ([]any, error) {
	result := slices.Clone(original)
	if slices.ContainsFunc(patch, func(item any) bool { o, _ := item.(object); return o[directive] == "replace" }) {
		result = nil
	}
	for _, item := range patch {
		o, _ := item.(object)
		if o[directive] == "replace" { // it is about the list
			continue
		}
		if o[key] == nil {
			return nil, fmt.Errorf("each item of %s needs its %s", name, key)
		}
		at := slices.IndexFunc(result, func(other any) bool {
			o2, _ := other.(object)
			return fmt.Sprint(o2[key]) == fmt.Sprint(o[key])
		})
		if o[directive] == "delete" {
			if at >= 0 {
				result = slices.Delete(result, at, at+1)
			}
			continue
		}
		if at < 0 {
			result, at = append(result, nil), len(result)
		}
		from, _ := result[at].(object)
		merged, err := merge(from, o)
		if err != nil {
			return nil, err
		}
		result[at] = merged
	}
	return result, nil
}
