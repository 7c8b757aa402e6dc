package config_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

const canary = "sk_test_canary"

// leaks reports whether text contains the canary, as it is or in another format.
func leaks(text string) bool {
	lower := strings.ToLower(text)
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("% x", canary), fmt.Sprintf("%d", []byte(canary))} {
		if strings.Contains(lower, form) {
			return true
		}
	}
	return false
}

func TestASecretIsNeverPrinted(t *testing.T) {
	type outer struct {
		Key    config.Secret
		hidden config.Secret
		List   []config.Secret
		Map    map[string]config.Secret
		Ptr    *config.Secret
	}
	key := config.NewSecret(canary)
	holder := outer{key, key, []config.Secret{key}, map[string]config.Secret{"a": key}, &key}

	for _, value := range []any{key, &key, holder, &holder, []any{key}, map[config.Secret]int{key: 1}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%10s", "%.3s", "%w"} {
			if text := fmt.Sprintf(verb, value); leaks(text) {
				t.Errorf("%s of %T shows the secret: %s", verb, value, text)
			}
		}
		if text := fmt.Errorf("charge: %w", fmt.Errorf("with %v", value)).Error(); leaks(text) {
			t.Errorf("an error shows the secret: %s", text)
		}
		if text, err := json.Marshal(value); err == nil && leaks(string(text)) {
			t.Errorf("the JSON of %T shows the secret: %s", value, text)
		}
		var lines bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&lines, nil), slog.NewTextHandler(&lines, nil)} {
			slog.New(handler).Info("m", slog.Any("value", value), slog.Any("error", errors.New(fmt.Sprint(value))))
		}
		if leaks(lines.String()) {
			t.Errorf("the log line of %T shows the secret: %s", value, &lines)
		}
	}
}

func TestASecretPrintsAsRedacted(t *testing.T) {
	key := config.NewSecret(canary)
	jsonText, err := json.Marshal(key)
	must(t, err)
	xmlText, err := xml.Marshal(key)
	must(t, err)
	got := []string{fmt.Sprintf("%s %#v %x", key, key, key), slog.AnyValue(key).String(), string(jsonText), string(xmlText)}
	want := []string{
		"[redacted] [redacted] [redacted]", "[redacted]", `"[redacted]"`, "<Secret>[redacted]</Secret>",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("formats (-got +want):\n%s", diff)
	}
	if got := key.Reveal() + (config.Secret{}).Reveal(); got != canary {
		t.Errorf("Reveal = %q, want %q, and nothing of the zero value", got, canary)
	}
}
