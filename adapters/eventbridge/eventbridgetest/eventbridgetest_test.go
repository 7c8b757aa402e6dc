package eventbridgetest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/eventbridge/eventbridgetest"
)

func entry(source, detail string) string {
	return fmt.Sprintf(`{"EventBusName":"orders","Source":%q,"DetailType":"t","Detail":%q}`, source, detail)
}

func TestLimits(t *testing.T) {
	fine := entry("s", "{}")
	for claim, tt := range map[string]struct {
		entries []string
		want    string // in the response
		events  int
	}{
		"no entries":         {nil, "ValidationException", 0},
		"ten entries":        {slices.Repeat([]string{fine}, 10), `"FailedEntryCount":0`, 10},
		"eleven entries":     {slices.Repeat([]string{fine}, 11), "ValidationException", 0},
		"a missing source":   {[]string{entry("", "{}"), fine}, "InvalidArgument", 1},
		"a detail of a list": {[]string{entry("s", "[1]"), fine}, "MalformedDetail", 1},
		"half a detail":      {[]string{entry("s", "{"), fine}, "MalformedDetail", 1},
	} {
		s, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.NewReader(`{"Entries":[` + strings.Join(tt.entries, ",") + `]}`)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Target", "AWSEvents.PutEvents")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if !strings.Contains(string(got), tt.want) || len(s.Archive()) != tt.events {
			t.Errorf("%s: got %s and %d events, want %s and %d", claim, got, len(s.Archive()), tt.want, tt.events)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
