package reported

import (
	"fmt"
	"strings"
	"testing"
)

// What a stranger sends in twenty megabytes is read in part, and never multiplied.
func TestFramesAreReadWithinLimits(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	for i := range 10 * maxFields {
		fmt.Fprintf(&wide, `"f%d":%d,`, i, i)
	}
	in, ok := readFrame([]byte(`{` + wide.String() + `"end":0}`))
	if !ok || len(in) != maxFields {
		t.Error(ok, len(in))
	}
	tasks := strings.Repeat(`{"taskId":1,"status":"NEW"},`, 3*maxFrameTasks)
	in, ok = readFrame([]byte(`{"tasks":[` + strings.TrimSuffix(tasks, ",") + `],"dag":{"vertices":[{},1,null,{"id":1}]}}`))
	if r := tasksAndProgress(in); !ok || len(r.Tasks) != maxFrameTasks {
		t.Error(ok, len(r.Tasks))
	}
	n := 0
	for range in.object("dag").objects("vertices", 10) {
		n++
	}
	if n != 2 {
		t.Error(n)
	}
}

func TestWhatIsNoObjectIsNoFrame(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{`, `[]`, `null`, `"x"`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,,}`, `{1:2}`} {
		if in, ok := readFrame([]byte(text)); ok {
			t.Error(text, in)
		}
	}
	in, ok := readFrame([]byte("{\"a\":\"\xff\",\"a\":\"b\",\"c\":[1,\"x\",{}]}"))
	if !ok || in.text("a") != "b" || in.text("c") != "" {
		t.Error(ok, in)
	}
}
