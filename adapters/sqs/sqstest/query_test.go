package sqstest_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// Debian 12 has AWS CLI 2.9.19 and boto3 1.26, which send the Query protocol. A readable
// error has to tell their users what to do.
func TestTheQueryProtocolIsRejectedWithAReadableError(t *testing.T) {
	t.Parallel()
	called := 0
	f := newServer(t, sqstest.Options{Before: func(sqstest.Call) { called++ }})
	form := url.Values{
		"Action": {"SendMessage"}, "Version": {"2012-11-05"}, "QueueUrl": {f.url}, "MessageBody": {"a"},
	}.Encode()
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>` +
		`<Code>UnsupportedProtocol</Code>` +
		`<Message>this queue speaks AWS JSON 1.0: use AWS CLI 2.13 or later, or orders post</Message></Error>` +
		`<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>`
	for name, tt := range map[string]struct{ method, url, body string }{
		"the AWS CLI posts a form to the endpoint": {http.MethodPost, f.URL, form},
		"boto3 posts a form to the queue":          {http.MethodPost, f.url, form},
		"a browser requests a URL":                 {http.MethodGet, f.url + "?" + form, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusBadRequest ||
			kind != "text/xml" {
			t.Errorf("%s: got status %d and %s, want 400 and text/xml", name, response.StatusCode, kind)
		}
		if diff := cmp.Diff(string(body), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	if got := f.counts("orders").Sent; got != 0 {
		t.Errorf("%d messages sent, want none", got)
	}
	if called != 0 {
		t.Errorf("Before was called %d times, want 0: a rejected request is not an operation", called)
	}
}

func TestAFormInAJSONRequestIsNotTheQueryProtocol(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	got := f.post("SendMessage", `Action=SendMessage`)
	if got.Status != http.StatusBadRequest || got.Type != "com.amazonaws.sqs#InvalidParameterValue" {
		t.Errorf("got %+v, want an InvalidParameterValue in JSON", got)
	}
}
