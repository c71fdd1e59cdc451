package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
)

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	for name, tt := range map[string]struct {
		at   time.Time
		want string
	}{
		"whole seconds keep their zeros": {time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC), `"2026-03-02T09:15:00.000Z"`},
		"finer parts are cut":            {time.Date(2026, 3, 2, 9, 15, 0, 123_999_999, time.UTC), `"2026-03-02T09:15:00.123Z"`},
		"other zones become UTC":         {time.Date(2026, 3, 2, 9, 15, 0, 0, zone), `"2026-03-02T07:15:00.000Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(api.At(tt.at))
			if err != nil || string(text) != tt.want {
				t.Errorf("got %s, %v; want %s", text, err, tt.want)
			}
			var back api.Time
			if err := json.Unmarshal(text, &back); err != nil || !back.Equal(tt.at.Truncate(time.Millisecond)) {
				t.Errorf("read back as %v, %v", back, err)
			}
		})
	}
}
