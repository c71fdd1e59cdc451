package crate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// describeInputs names the files that the run was given. They are not in the crate:
// it says by address or hash what they were.
func (d *description) describeInputs() {
	declared := map[string]graph.Input{}
	for _, in := range d.graph.Inputs {
		declared[in.Name] = in
	}
	seen := map[string]string{} // the key of what has an id
	for _, in := range d.inputs {
		formal := ref{"#input/" + in.name}
		several := declared[in.name].Many || in.folder != "" || len(in.files) > 1
		var files []ref
		for _, f := range in.files {
			id := freeID(seen, f)
			files = append(files, ref{id})
			d.byKey[f.Key] = ref{id}
			if seen[id] != "" {
				continue
			}
			seen[id] = f.Key
			e := d.givenFile(id, f)
			if !several {
				e["exampleOfWork"] = formal
			}
			d.parts = append(d.parts, d.add(e))
		}
		d.taken[in.name] = files
		switch files = unique(files); {
		case declared[in.name].Directory && in.folder != "":
			id := addressID(in.folder)
			e := entity{"@id": id, "@type": "Dataset", "name": path.Base(in.folder), "exampleOfWork": formal}
			e.point("hasPart", files)
			d.taken[in.name] = []ref{d.add(e)}
			d.parts = append(d.parts, ref{id})
		case several:
			d.taken[in.name] = d.collection("#files/"+in.name, "The files of the input "+in.name, files, entity{"exampleOfWork": formal})
		}
	}
}

// freeID is the id of a file, with a number where another file has it: two addresses may
// differ only in what is left out.
func freeID(seen map[string]string, f runs.GivenFile) string {
	id := inputID(f)
	for n := 2; seen[id] != "" && seen[id] != f.Key && addresses.Is(f.Key); n++ {
		id = fmt.Sprintf("%s#%d", inputID(f), n)
	}
	return id
}

func (d *description) givenFile(id string, f runs.GivenFile) entity {
	name, size := cmp.Or(f.Name, path.Base(f.Key)), f.Size
	if addresses.Is(f.Key) {
		name = addresses.Address{URL: f.Key}.Name()
	}
	if f.Folder {
		size = f.Contents
	}
	e := entity{"@id": id, "@type": kindOf(f.Folder), "name": name}
	if f.SHA256 != "" && !f.Folder { // that of a folder is of its manifest
		e["sha256"] = f.SHA256
	}
	if !f.Gone && size >= 0 { // not every server tells how large a file is
		e["contentSize"] = strconv.FormatInt(size, 10)
	}
	if !f.Folder {
		e["encodingFormat"] = mediaType(mime.TypeByExtension(path.Ext(cmp.Or(f.Name, f.Key))))
	}
	if strings.HasPrefix(id, "http") {
		e["sdDatePublished"] = stamp(cmp.Or(d.run.CreatedAt, d.at)) // when it was asked for
	}
	return e
}

// inputID is the address of a file, without what may be a password in it, or its hash.
func inputID(f runs.GivenFile) string {
	id := addressID(f.Key)
	if id == "" && f.SHA256 != "" {
		id = "urn:sha256:" + f.SHA256
	}
	if id == "" {
		return keyID(f.Key, f.Folder)
	}
	return asFolder(id, f.Folder)
}

// addressID is an address without what may be a password in it; empty: it is none.
func addressID(key string) string {
	u, err := url.Parse(key)
	if err != nil || !u.IsAbs() || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// keyID names a file of the team that is not in the crate.
func keyID(key string, folder bool) string {
	return asFolder("urn:millrace:"+(&url.URL{Path: key}).EscapedPath(), folder)
}

// asFolder is an id that ends with a slash if it is that of a folder.
func asFolder(id string, folder bool) string {
	if folder && !strings.HasSuffix(id, "/") {
		return id + "/"
	}
	return id
}

// plainMedia is what readers of crates take for a media type.
var plainMedia = regexp.MustCompile(`^\w*/\w[\w.-]*(\+\w[\w.-]*)?$`)

// mediaType is a media type without its parameters, or the one of any bytes.
func mediaType(t string) string {
	t, _, _ = strings.Cut(t, ";")
	if !plainMedia.MatchString(t) {
		return "application/octet-stream"
	}
	return t
}

// describeParameters names the values that the run was given.
func (d *description) describeParameters() (values []ref) {
	var given map[string]json.RawMessage
	_ = json.Unmarshal(d.run.Parameters, &given) // stored by us
	for _, name := range slices.Sorted(maps.Keys(given)) {
		values = append(values, d.add(entity{"@id": "#value/" + name, "@type": "PropertyValue", "name": name, "value": value(addresses.ShownIn(given[name])), "exampleOfWork": ref{"#parameter/" + name}}))
	}
	return values
}

// value is a parameter's as text, as what it may be is no more than that in a crate.
func value(v json.RawMessage) string {
	var s *string
	if json.Unmarshal(v, &s) == nil && s != nil {
		return *s
	}
	return string(v)
}

// maxBetween is how many files a run may have made for those that are not in the crate
// to be described.
const maxBetween = 10_000

// describeOutputs names the files that steps have made. Those that are not results of
// the run are not in the crate.
func (d *description) describeOutputs() {
	var ports []port
	for _, o := range d.files() {
		at := port{o.Node, o.Port}
		if _, known := d.made[at]; !known {
			ports = append(ports, at)
		}
		id, kept := d.paths[o.Key]
		if !kept {
			id = keyID(o.Key, o.Folder != nil)
		}
		e := entity{"@id": id, "@type": kindOf(o.Folder != nil), "name": o.Name, "contentSize": strconv.FormatInt(o.Contents(), 10)}
		if o.Folder == nil {
			e["sha256"], e["encodingFormat"] = o.SHA256, mediaType(o.ContentType)
		}
		if kept && !d.several(at) {
			e["exampleOfWork"] = ref{d.outputID(at)}
		}
		file := d.add(e)
		d.parts = append(d.parts, file)
		d.made[at] = append(d.made[at], file)
		d.madeBy[itemPort{at, o.Shard}] = append(d.madeBy[itemPort{at, o.Shard}], file)
		d.byKey[o.Key] = file
	}
	for _, at := range ports {
		result := slices.ContainsFunc(d.outputs, func(o runs.Listed) bool { return port{o.Node, o.Port} == at })
		if d.several(at) {
			also := entity{}
			if result {
				also["exampleOfWork"] = ref{d.outputID(at)}
			}
			d.made[at] = d.collection("#files/"+at.node+"."+at.name, "The files at the output "+at.name+" of "+at.node, d.made[at], also)
		}
		if result {
			d.result = append(d.result, d.made[at]...)
		}
	}
}

// files are those that are described: all that steps have made, or the results alone
// where there are too many.
func (d *description) files() []runs.Output {
	results := make([]runs.Output, len(d.outputs))
	for i, o := range d.outputs {
		results[i] = o.Output
	}
	if len(d.produced) > maxBetween {
		return results
	}
	list := slices.Clone(results)
	for _, o := range d.produced {
		if _, kept := d.paths[o.Key]; !kept {
			list = append(list, o)
		}
	}
	return list
}

// several reports whether a port may have more than one file.
func (d *description) several(at port) bool {
	n, known := d.graph.Node(at.node)
	if !known || n.Scatter != nil {
		return true
	}
	return slices.ContainsFunc(n.Outputs, func(o graph.OutPort) bool { return o.Name == at.name && o.Many })
}

func kindOf(folder bool) string {
	if folder {
		return "Dataset"
	}
	return "File"
}

// outputID is what the workflow calls what comes out of a port.
func (d *description) outputID(from port) string {
	for _, o := range d.graph.Outputs {
		if o.Node == from.node && o.Port == from.name {
			return "#output/" + o.Name
		}
	}
	return "#output/" + from.node + "." + from.name
}
