package eventbridgetest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/eventbridge/eventbridgetest"
)

// put sends entries, and returns the status and what became of each entry.
func put(t *testing.T, s *eventbridgetest.Server, entries ...string) (status int, codes string) {
	t.Helper()
	body := strings.NewReader(`{"Entries":[` + strings.Join(entries, ",") + `]}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AWSEvents.PutEvents")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	var out struct {
		Type    string `json:"__type"`
		Entries []struct{ ErrorCode string }
	}
	if err != nil || json.Unmarshal(text, &out) != nil {
		t.Fatalf("got %v, %s", err, text)
	}
	all := []string{out.Type}
	for _, e := range out.Entries {
		all = append(all, e.ErrorCode)
	}
	return response.StatusCode, strings.Join(all, " ")
}

func entry(source, detailType, detail string) string {
	return fmt.Sprintf(`{"EventBusName":"orders","Source":%q,"DetailType":%q,"Detail":%q}`, source, detailType, detail)
}

// ofSize returns an entry of n bytes, as EventBridge counts them.
func ofSize(n int) string { return entry("s", "t", `{"a":"`+strings.Repeat("x", n-10)+`"}`) }

func TestLimits(t *testing.T) {
	fine, none := entry("s", "t", "{}"), entry("", "t", "{}")
	ten := slices.Repeat([]string{fine}, 10)
	for claim, tt := range map[string]struct {
		entries []string
		want    string
		events  int
	}{
		"no entries":      {nil, eventbridgetest.CodeValidation, 0},
		"ten entries":     {ten, strings.Repeat(" ", 10), 10},
		"eleven entries":  {slices.Repeat([]string{fine}, 11), eventbridgetest.CodeValidation, 0},
		"a byte under":    {[]string{ofSize(eventbridgetest.MaxSize - 1)}, " ", 1},
		"1 MB together":   {slices.Repeat([]string{ofSize(eventbridgetest.MaxSize / 2)}, 2), eventbridgetest.CodeValidation, 0},
		"none complete":   {[]string{none, entry("s", "", "{}")}, eventbridgetest.CodeValidation, 0},
		"one is complete": {[]string{none, fine}, " InvalidArgument ", 1},
		"an invalid detail": {
			[]string{entry("s", "t", "[1]"), entry("s", "t", "{"), fine}, " MalformedDetail MalformedDetail ", 1,
		},
		"a source of AWS's":  {[]string{entry("aws.s3", "t", "{}")}, " NotAuthorizedForSourceException", 0},
		"a long detail-type": {[]string{entry("s", strings.Repeat("é", 129), "{}")}, " InvalidArgument", 0},
		"the longest one":    {[]string{entry("s", strings.Repeat("é", 128), "{}")}, " ", 1},
	} {
		s, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		status, got := put(t, s, tt.entries...)
		if refused := tt.want == eventbridgetest.CodeValidation; got != tt.want || (status == 400) != refused || len(s.Archive()) != tt.events {
			t.Errorf("%s: got %d, %q and %d events, want %q and %d", claim, status, got, len(s.Archive()), tt.want, tt.events)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
