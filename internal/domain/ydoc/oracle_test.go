package ydoc

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/millrace/millrace/internal/collab/nodetest"
	"github.com/millrace/millrace/internal/sizetest"
)

var (
	histories = flag.Int("histories", 0, "how many random histories to compare with Yjs; 0: as many as sizetest says")
	firstSeed = flag.Int("seed", 1, "the seed of the first history")
)

func manyHistories() int {
	if *histories > 0 {
		return *histories
	}
	return sizetest.Pick(150, 1000)
}

// TestYjsAgrees lets Yjs make random histories of several people and compares
// what both make of them.
func TestYjsAgrees(t *testing.T) {
	t.Parallel()
	workers := min(max(runtime.GOMAXPROCS(0), 2), 4)
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			o := startOracle(t)
			for i := w; i < manyHistories(); i += workers {
				o.compare(t, *firstSeed+i)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestYjsReadsWhatWePassOn damages good updates at random. Whatever we make of
// them is stored and sent to everybody, so no client may stumble over it.
func TestYjsReadsWhatWePassOn(t *testing.T) {
	t.Parallel()
	o := startOracle(t)
	vectors := golden(t)
	r := rand.New(rand.NewPCG(uint64(*firstSeed), 1))
	passed := 0
	for range 5 * manyHistories() {
		v := vectors[r.IntN(len(vectors))]
		base := unhex(t, v.State)
		damaged := unhex(t, v.Updates[r.IntN(len(v.Updates))])
		for range 1 + r.IntN(3) {
			damaged[r.IntN(len(damaged))] = byte(r.IntN(1 << (1 + r.IntN(8))))
		}
		d := New(1, Limits{})
		if err := d.Apply(base); err != nil {
			t.Fatal(err)
		}
		changes, err := d.Take(damaged)
		if err != nil || changes == nil && !d.Pending() {
			continue
		}
		passed++
		written := [][][]byte{{d.Encode()}}
		if changes != nil {
			written = append(written, [][]byte{base, changes}, [][]byte{changes, base})
		}
		for _, updates := range written {
			var answer verdict
			if o.Ask(t, map[string]any{"updates": updates}, &answer); answer.Error != "" {
				t.Fatalf("%x after %x: %s", damaged, base, answer.Error)
			}
		}
	}
	if passed == 0 {
		t.Error("nothing was taken in")
	}
}

// sight is what can be seen of a document.
type sight struct {
	JSON    any
	Vector  []byte
	Pending bool
}

type history struct {
	Error       string
	Delivered   [][]byte
	Cut         int
	Half, Whole sight
	State       []byte // of the whole, as short as it gets
	Vector      []byte // of a peer
	Diff        []byte // what that peer lacks
	Merged      []byte
}

type verdict struct {
	Error      string
	Concurrent [][]byte
	After      sight
	State      []byte
}

func (o oracle) compare(t *testing.T, seed int) {
	t.Helper()
	var h history
	o.Ask(t, map[string]any{"seed": seed}, &h)
	if h.Error != "" {
		t.Fatalf("seed %d: Yjs: %s", seed, h.Error)
	}
	d := New(uint64(seed)+1<<40, Limits{})
	check := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("seed %d: %s differs", seed, what)
		}
	}
	taken := take(t, d, h.Delivered[:h.Cut])
	check("the half", reflect.DeepEqual(look(t, d), h.Half))
	half := d.Encode()
	taken = append(taken, take(t, d, h.Delivered[h.Cut:])...)
	check("the whole", reflect.DeepEqual(look(t, d), h.Whole))

	version, full := d.Version(), d.Encode()
	check("what is new when all comes twice", len(take(t, d, h.Delivered)) == 0 && d.Version() == version)
	d.Compact()
	check("the whole after compaction", reflect.DeepEqual(look(t, d), h.Whole))
	check("the state", bytes.Equal(d.Encode(), h.State))
	known, err := d.Knows(h.Merged)
	check("knowledge", known && err == nil)
	diff, err := d.Diff(h.Vector)
	check("the diff", err == nil && bytes.Equal(diff, h.Diff))
	merged, err := Merge(h.Delivered...)
	check("merging", err == nil)

	edits := editAtRandom(t, d, rand.New(rand.NewPCG(uint64(seed), 0)))
	var v verdict
	o.Ask(t, map[string]any{
		"half": half, "full": full, "diff": diff, "merged": merged, "taken": taken, "edits": edits,
	}, &v)
	if v.Error != "" {
		t.Fatalf("seed %d: %s", seed, v.Error)
	}
	take(t, d, v.Concurrent)
	check("the whole after edits", reflect.DeepEqual(look(t, d), v.After))
	d.Compact()
	check("the state after edits", bytes.Equal(d.Encode(), v.State))
}

// take takes in updates and returns what is to be passed on.
func take(t *testing.T, d *Doc, updates [][]byte) [][]byte {
	t.Helper()
	all := [][]byte{}
	for _, u := range updates {
		changes, err := d.Take(u)
		if err != nil {
			t.Fatalf("%x: %v", u, err)
		}
		if changes != nil {
			all = append(all, changes)
		}
	}
	return all
}

func look(t *testing.T, d *Doc) sight {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"m": d.Map("m").JSON(), "a": d.Array("a").JSON(), "t": d.Text("t").String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := sight{Vector: d.StateVector(), Pending: d.Pending()}
	if err := json.Unmarshal(b, &s.JSON); err != nil {
		t.Fatal(err)
	}
	return s
}

// editAtRandom edits as the server does and returns the updates.
func editAtRandom(t *testing.T, d *Doc, r *rand.Rand) [][]byte {
	t.Helper()
	keys := []string{"k1", "k2", "k3", "ключ"}
	texts := []string{"", "echo", "echo 😀", "écho 😀 and more", "日本", "bad \xff"}
	updates := [][]byte{}
	for range 1 + r.IntN(3) {
		u, err := d.Edit(func(tx *Tx) error {
			for range 1 + r.IntN(4) {
				m := tx.Map("m")
				key := keys[r.IntN(4)]
				if inner, ok := m.Map(key); ok && r.IntN(2) == 0 {
					m, key = inner, keys[r.IntN(4)]
				}
				switch r.IntN(5) {
				case 0:
					tx.Delete(m, key)
				case 1:
					tx.Set(tx.SetMap(m, key), "in", map[string]any{"b": 1, "a": []any{1.5, nil, true, "x", 1e300}})
				case 2:
					tx.SetText(m, key, texts[r.IntN(len(texts))])
				case 3:
					if text, ok := m.Text(key); ok {
						tx.Replace(text, texts[r.IntN(len(texts))])
					}
				default:
					tx.Set(m, key, []any{r.IntN(100) - 50, r.Float64(), texts[r.IntN(len(texts))]})
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if u != nil {
			updates = append(updates, u)
		}
	}
	return updates
}

// oracle asks Yjs.
type oracle struct{ *nodetest.Script }

func startOracle(t *testing.T) oracle {
	t.Helper()
	return oracle{nodetest.Start(t, "oracle", "oracle.mjs")}
}
