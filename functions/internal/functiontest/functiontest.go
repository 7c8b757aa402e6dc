// Package functiontest is what the tests of the functions share: an environment, a cloud
// and an output. It knows no function.
package functiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// Environ returns valid variables that several functions read, with changes. Services are
// at url, or where they are by default if that is "". Every secret has the word canary.
func Environ(url string, changes ...string) []string {
	return append([]string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary", "AWS_ENDPOINT_URL=" + url,
		"ORDERS_TABLE=orders", "QUEUE_URL=https://sqs.example/1/live", "DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead",
		"SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary", "STRIPE_API_BASE=" + url,
	}, changes...) // the last of two values counts
}

// Wrong reports whether an error of an environment lacks a text, or shows a secret. Of ""
// it reports whether there is an error.
func Wrong(err error, want string) bool {
	if err == nil || want == "" {
		return err != nil || want != ""
	}
	return !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")
}

// Cloud answers the calls to every service, and records them.
type Cloud struct {
	URL string

	answer func(call, body string) string
	mu     sync.Mutex
	calls  []string
}

// Serve serves a cloud. answer returns the body of a response, or "": then it is empty,
// and Stripe is unavailable.
func Serve(t *testing.T, answer func(call, body string) string) *Cloud {
	t.Helper()
	c := &Cloud{answer: answer}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// resource is what a call to AWS is about.
var resource = regexp.MustCompile(`"(?:TableName|QueueUrl|SecretId)":"([^"]*)"`)

// ServeHTTP records a call as the operation of AWS and what it is about, or as a request
// with its key.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call, response := r.Header.Get("X-Amz-Target"), "{}"
	if about := resource.FindStringSubmatch(string(body)); call != "" && about != nil {
		call += " " + about[1]
	}
	if call == "" {
		call = r.Method + " " + r.URL.Path
		if key, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
			call += " " + key
		}
		response = ""
	}
	if text := c.answer(call, string(body)); text != "" {
		response = text
	}
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if response == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		response = `{"error":{"type":"api_error","message":"try later"}}`
	}
	_, _ = io.WriteString(w, response)
}

// Calls returns the calls so far.
func (c *Cloud) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Batch returns messages whose ids are m-1, m-2 and so on.
func Batch(bodies ...string) (e events.SQSEvent) {
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint("m-", i+1), Body: body})
	}
	return e
}

// Output is what a function prints. It is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the output. It returns no error.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns what was printed until now.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Lacks returns which of some texts is not in the output, or that a secret is, or "".
func (o *Output) Lacks(want ...string) string {
	text := o.String()
	for _, part := range want {
		if !strings.Contains(text, part) {
			return part
		}
	}
	if strings.Contains(text, "canary") || strings.Contains(text, "whsec_") {
		return "only what is not secret"
	}
	return ""
}

// Metrics returns the sums of the metrics of the scope test, apart from the latency of
// calls, by name and dimension with a space between them.
func (o *Output) Metrics() map[string]float64 {
	sums := map[string]float64{}
	for line := range strings.Lines(o.String()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) != nil || fields["_aws"] == nil || fields["Scope"] != "test" {
			continue
		}
		dimension, values := "", map[string][]any{}
		for name, field := range fields {
			if text, is := field.(string); is && name != "Scope" {
				dimension = " " + text
			} else if all, is := field.([]any); is && name != "CallLatency" {
				values[name] = all
			}
		}
		for name, all := range values {
			for _, value := range all {
				sums[name+dimension] += value.(float64)
			}
		}
	}
	return sums
}

// Unset returns the names of the fields of a struct that are not set.
func Unset(wired any) (names []string) {
	v := reflect.ValueOf(wired)
	for field := range v.Type().Fields() {
		if v.FieldByIndex(field.Index).IsZero() {
			names = append(names, field.Name)
		}
	}
	return names
}

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
