package webhooks

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs/webhooks"
)

func TestPauseOfAWebhookIsShown(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 16, 5, 0, 0, 0, time.UTC)
	if got := WebhookOut(webhooks.Webhook{Enabled: true, Timeouts: 1}); got.Paused != nil {
		t.Errorf("%+v", got.Paused)
	}
	got := WebhookOut(webhooks.Webhook{Enabled: true, Timeouts: 4, PausedUntil: until})
	if got.Paused == nil || got.Paused.Code != "webhook_slow" || !strings.Contains(got.Paused.Message, "4 times in a row") || !got.Paused.Until.Equal(until) || !got.Enabled {
		t.Errorf("%+v", got.Paused)
	}
}
