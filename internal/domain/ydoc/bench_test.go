package ydoc

import (
	"fmt"
	"testing"
)

// session returns the updates of three people who build a workflow of 100
// nodes at once: they place them, type commands, move nodes and rename them.
func session(b *testing.B) [][]byte {
	b.Helper()
	var people []*Doc
	for i := range 3 {
		people = append(people, New(uint64(1000+i), Limits{}))
	}
	var updates [][]byte
	write := func(i int, f func(node func(int) Map, tx *Tx)) {
		u := edit(b, people[i%3], func(tx *Tx) {
			f(func(n int) Map { m, _ := tx.Map("nodes").Map(fmt.Sprint("node", n)); return m }, tx)
		})
		updates = append(updates, u)
		for j := range 2 {
			if err := people[(i+1+j)%3].Apply(u); err != nil {
				b.Fatal(err)
			}
		}
	}
	for n := range 100 {
		write(n, func(_ func(int) Map, tx *Tx) {
			m := tx.SetMap(tx.Map("nodes"), fmt.Sprint("node", n))
			tx.Set(m, "type", "task")
			tx.Set(m, "position", []any{n * 10, n * 20})
			tx.SetText(m, "command", "")
		})
	}
	for i := range 4000 {
		write(i, func(node func(int) Map, tx *Tx) {
			m := node(i * 7 % 100)
			switch i % 4 {
			case 0:
				tx.Set(m, "position", []any{i, i / 2})
			case 1:
				tx.Set(m, "name", fmt.Sprint("step ", i))
			default:
				text, _ := m.Text("command")
				tx.Insert(text, len(text.String()), "x")
			}
		})
	}
	return updates
}

func BenchmarkApply(b *testing.B) {
	updates := session(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d := New(1, Limits{})
		for _, u := range updates {
			if err := d.Apply(u); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(updates)), "µs/update")
}

func BenchmarkMerge20(b *testing.B) {
	updates := session(b)[1000:1020]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge(updates...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	d := New(1, Limits{})
	for _, u := range session(b) {
		if err := d.Apply(u); err != nil {
			b.Fatal(err)
		}
	}
	d.Compact()
	b.ReportAllocs()
	b.SetBytes(int64(len(d.Encode())))
	for b.Loop() {
		d.Encode()
	}
}
