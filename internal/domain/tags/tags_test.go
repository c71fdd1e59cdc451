package tags

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTagsArePlainWords(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]bool{
		"pilot": true, "grant:2026/4.1_b-x": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"": false, "two words": false, "ü": false, "a\"b": false, "a%b": false, "a\x00": false, "a,b": false,
	} {
		if Valid(tag) != want {
			t.Errorf("%q: %v", tag, !want)
		}
	}
}

func TestWhatComesTwiceIsKeptOnce(t *testing.T) {
	t.Parallel()
	clean, wrong := Checked([]string{"b", "a", "b"})
	if len(wrong) != 0 || !slices.Equal(clean, []string{"b", "a"}) {
		t.Error(clean, wrong)
	}
	if _, wrong := Checked([]string{"ok", "not ok", "nor,this"}); len(wrong) != 2 || wrong[0].Path != "tags[1]" || wrong[1].Path != "tags[2]" {
		t.Error(wrong)
	}
}

func TestThereAreAtMostTwentyTags(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range Most {
		list = append(list, fmt.Sprint("t", i))
	}
	if _, wrong := Checked(list); len(wrong) != 0 {
		t.Error(wrong)
	}
	if _, wrong := Checked(append(list, "one-more")); len(wrong) != 1 || wrong[0].Path != "tags" {
		t.Error(wrong)
	}
	if _, wrong := Checked(make([]string, 100_000)); len(wrong) != 1 {
		t.Errorf("%d faults of a long list", len(wrong))
	}
}
