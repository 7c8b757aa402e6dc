package eventbridgetest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge/eventbridgetest"
)

func open(t *testing.T, refuse func(eventbridgetest.Event) string) (*eventbridgetest.Server, *eventbridge.Client) {
	t.Helper()
	s, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders", Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, eventbridge.New(eventbridge.Options{
		Region: "us-east-1", BaseEndpoint: &s.URL, HTTPClient: http.DefaultClient, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	})
}

func entry(source, detailType, detail string) types.PutEventsRequestEntry {
	e := types.PutEventsRequestEntry{EventBusName: aws.String("orders")}
	for value, field := range map[*string]**string{&source: &e.Source, &detailType: &e.DetailType, &detail: &e.Detail} {
		if *value != "" {
			*field = value
		}
	}
	return e
}

// ofSize returns an entry of n bytes, as EventBridge counts them.
func ofSize(n int) types.PutEventsRequestEntry {
	return entry("s", "t", `{"a":"`+strings.Repeat("x", n-10)+`"}`)
}

func put(t *testing.T, c *eventbridge.Client, entries ...types.PutEventsRequestEntry) (*eventbridge.PutEventsOutput, string) {
	t.Helper()
	out, err := c.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: entries})
	if apiError, ok := errors.AsType[smithy.APIError](err); ok {
		return nil, apiError.ErrorCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, ""
}

func TestRequestLimits(t *testing.T) {
	t.Parallel()
	fine := entry("s", "t", "{}")
	for claim, tt := range map[string]struct {
		entries []types.PutEventsRequestEntry
		want    string
	}{
		"no entries":      {[]types.PutEventsRequestEntry{}, eventbridgetest.CodeValidation},
		"ten entries":     {repeat(fine, 10), ""},
		"eleven entries":  {repeat(fine, 11), eventbridgetest.CodeValidation},
		"a byte under":    {[]types.PutEventsRequestEntry{ofSize(eventbridgetest.MaxSize - 1)}, ""},
		"1 MB":            {[]types.PutEventsRequestEntry{ofSize(eventbridgetest.MaxSize)}, eventbridgetest.CodeValidation},
		"1 MB together":   {repeat(ofSize(eventbridgetest.MaxSize/2), 2), eventbridgetest.CodeValidation},
		"none complete":   {[]types.PutEventsRequestEntry{entry("", "t", "{}"), entry("s", "", "{}")}, eventbridgetest.CodeValidation},
		"one is complete": {[]types.PutEventsRequestEntry{entry("", "t", "{}"), fine}, ""},
	} {
		s, client := open(t, nil)
		if _, got := put(t, client, tt.entries...); got != tt.want {
			t.Errorf("%s: got code %q, want %q", claim, got, tt.want)
		}
		if tt.want != "" && len(s.Archive()) > 0 {
			t.Errorf("%s: got %d events, want none of a failed request", claim, len(s.Archive()))
		}
	}
}

func repeat(e types.PutEventsRequestEntry, n int) []types.PutEventsRequestEntry {
	return slices.Repeat([]types.PutEventsRequestEntry{e}, n)
}

func TestARefusedEntryDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	s, client := open(t, func(e eventbridgetest.Event) string {
		if e.DetailType == "unwanted" {
			return eventbridgetest.CodeThrottling
		}
		return ""
	})
	out, _ := put(
		t, client, entry("s", "first", "{}"), entry("s", "", "{}"), entry("s", "t", "[1]"), entry("s", "t", "{"),
		entry("aws.s3", "t", "{}"), entry("s", strings.Repeat("é", 129), "{}"), entry("s", "unwanted", "{}"),
		entry("s", strings.Repeat("é", 128), "{}"),
	)
	var codes []string
	for _, e := range out.Entries {
		codes = append(codes, aws.ToString(e.ErrorCode))
	}
	want := []string{
		"", "InvalidArgument", "MalformedDetail", "MalformedDetail", "NotAuthorizedForSourceException", "InvalidArgument",
		"ThrottlingException", "",
	}
	if diff := cmp.Diff(codes, want); diff != "" || out.FailedEntryCount != 6 || len(s.Archive()) != 2 {
		t.Errorf("got %d failed entries and %d events; codes (-got +want):\n%s", out.FailedEntryCount, len(s.Archive()), diff)
	}
	if aws.ToString(out.Entries[7].EventId) == aws.ToString(out.Entries[0].EventId) {
		t.Error("two events have one id")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, client := open(t, nil)
	s.Fail(eventbridgetest.CodeThrottling, 2)
	for _, want := range []string{eventbridgetest.CodeThrottling, eventbridgetest.CodeThrottling, ""} {
		if _, got := put(t, client, entry("s", "t", "{}")); got != want {
			t.Errorf("got code %q, want %q", got, want)
		}
	}
	s.Lose(1)
	if _, err := client.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: repeat(entry("s", "t", "{}"), 1)}); err == nil {
		t.Error("got a response, want none")
	}
	if len(s.Archive()) != 2 || s.Calls() != 4 {
		t.Errorf("got %d events of %d calls, want the lost one of 4 too", len(s.Archive()), s.Calls())
	}
}
