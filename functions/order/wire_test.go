package main

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// cloud is a server for every service that the function calls. It records the calls and
// sends minimal responses.
type cloud struct {
	url    string
	secret string // Secrets Manager's response

	mu    sync.Mutex
	asked []string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := new(cloud)
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// environ returns an environment that directs every call to the cloud.
func (c *cloud) environ(changes ...string) []string {
	return complete(append([]string{"AWS_ENDPOINT_URL=" + c.url, "STRIPE_API_BASE=" + c.url}, changes...)...)
}

// calls returns the recorded calls, sorted.
func (c *cloud) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.asked))
}

// batchOf returns a batch of messages whose ids are m-1, m-2 and so on.
func batchOf(bodies ...string) (e events.SQSEvent) {
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprintf("m-%d", i+1), Body: body})
	}
	return e
}

// output is the function's standard output. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// message is the body of a valid order, and owner the owner of its claim.
const (
	message = `{"orderId":"ORD-1","customerId":"CUST-1","currency":"usd","lines":[{"sku":"MUG","quantity":1,"unitAmount":1250}],` +
		`"payment":{"customer":"cus_canary","method":"pm_canary"}}`
	owner = "owner-1"
)

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		Table       string `json:"TableName"`
		Queue       string `json:"QueueUrl"`
		Secret      string `json:"SecretId"`
		MessageBody string
	}
	_ = json.Unmarshal(body, &in) // Stripe's is a form
	target := r.Header.Get("X-Amz-Target")
	asked, answer, status := target+" "+in.Table+in.Queue+in.Secret, "", http.StatusOK
	switch target {
	case "DynamoDB_20120810.UpdateItem":
		answer = claimed()
	case "AmazonSQS.ChangeMessageVisibilityBatch":
		answer = "{}"
	case "AmazonSQS.GetQueueAttributes":
		answer = settings(in.Queue)
	case "AmazonSQS.SendMessage":
		sum := md5.Sum([]byte(in.MessageBody)) // which the SDK compares with what it sent
		answer = `{"MessageId":"m","MD5OfMessageBody":"` + hex.EncodeToString(sum[:]) + `"}`
	case "secretsmanager.GetSecretValue":
		answer = c.secret
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		asked = fmt.Sprintf(
			"%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), r.FormValue("metadata[scope]"),
		)
		answer, status = `{"error":{"type":"api_error","message":"try later"}}`, http.StatusServiceUnavailable
	}
	c.mu.Lock()
	c.asked = append(c.asked, asked)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// settings returns the attributes of a queue as infra/terraform sets them.
func settings(queue string) string {
	if strings.HasSuffix(queue, "/dead") {
		return `{"Attributes":{"QueueArn":"arn:aws:sqs:eu-west-1:1:dead","MessageRetentionPeriod":"1209600"}}`
	}
	return `{"Attributes":{"QueueArn":"arn:aws:sqs:eu-west-1:1:orders","MessageRetentionPeriod":"604800",` +
		`"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:eu-west-1:1:dead\",\"maxReceiveCount\":1000}"}}`
}

// claimed returns the row of docs/reference/row.md after the owner's claim.
func claimed() string {
	o, _ := orders.NewDecoder().Decode(message)
	return `{"Attributes":{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"open"},` +
		`"fingerprint":{"S":"` + string(o.Fingerprint()) + `"},"customerId":{"S":"CUST-1"},` +
		`"amount":{"N":"1250"},"currency":{"S":"usd"},"attempt":{"N":"1"},"owner":{"S":"` + owner + `"},` +
		`"leaseUntil":{"N":"1767225660000"},"seq":{"N":"0"},"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"},` +
		`"openShard":{"N":"1"},"dueAt":{"N":"1767226500000"}}}`
}

// The batch has an order, for which Stripe is unavailable, and an invalid message.
func TestWire(t *testing.T) {
	t.Parallel()
	shared := []string{
		"AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/orders",
		"AmazonSQS.GetQueueAttributes https://sqs.example/1/dead", // once in the life of a process
		"AmazonSQS.GetQueueAttributes https://sqs.example/1/orders",
		"AmazonSQS.SendMessage https://sqs.example/1/dead",
		"DynamoDB_20120810.UpdateItem orders", // claim
		"DynamoDB_20120810.UpdateItem orders", // release
	}
	for claim, tt := range map[string]struct {
		secret  string
		changes []string
		more    []string
	}{
		"every call goes where the environment says": {more: []string{"POST /v1/payment_intents Bearer sk_test_canary test"}},
		"the key comes from the secret": {
			secret:  `{"SecretString":"rk_test_secret\n"}`,
			changes: []string{"STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN=" + secretARN},
			more:    []string{"POST /v1/payment_intents Bearer rk_test_secret test", "secretsmanager.GetSecretValue " + secretARN},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out output
			c := newCloud(t)
			c.secret = tt.secret
			h, err := wire(t.Context(), c.environ(tt.changes...), &out)
			must(t, err)
			h.NewOwner = func() string { return owner }
			answer, err := h.Handle(t.Context(), batchOf(message, "no order"))
			h.Settings.Wait()
			want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "m-1"}}}
			if diff := cmp.Diff(answer, want); err != nil || diff != "" {
				t.Errorf("error = %v; response: got -, want +\n%s\n%s", err, diff, &out)
			}
			if diff := cmp.Diff(c.calls(), append(slices.Clone(shared), tt.more...)); diff != "" {
				t.Errorf("calls: got -, want +\n%s", diff)
			}
			for _, line := range []string{
				`"Namespace":"orderonce"`, `"Scope":"test"`, `"CallLatency"`,
				`"Call":"POST /v1/payment_intents"`, `"Call":"DynamoDB_20120810.UpdateItem"`,
				`"Call":"AmazonSQS.SendMessage"`, `{"Name":"WaitingAge","Unit":"Milliseconds"}`,
				`"reason":"provider_unavailable"`, `"reason":"invalid_order"`,
			} {
				if !strings.Contains(out.String(), line) {
					t.Errorf("want %s in the output:\n%s", line, &out)
				}
			}
			if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "rk_test_secret") {
				t.Errorf("the output shows a secret:\n%s", &out)
			}
		})
	}
}

// A connection costs a TLS handshake, so each client keeps one for each order of a batch.
// The first calls of a batch are answered only when all have arrived, so that each needs
// one; a few more are opened if a call looks for an idle one too early.
func TestEachClientKeepsAConnectionForEachOrder(t *testing.T) {
	t.Parallel()
	const orders, batches = 4, 10
	c := newCloud(t)
	var all *sync.WaitGroup // of the batch
	var mu sync.Mutex
	opened, arrived := map[string]bool{}, 0
	stripe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		opened[r.RemoteAddr] = true
		if arrived++; arrived <= orders {
			all.Done()
		}
		mu.Unlock()
		all.Wait()
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(stripe.Close)
	h, err := wire(t.Context(), c.environ("PARALLEL_ORDERS=4", "STRIPE_API_BASE="+stripe.URL), new(output))
	must(t, err)
	h.Settings, h.NewOwner = nil, func() string { return owner }
	bodies := make([]string, orders)
	for n := range bodies {
		bodies[n] = strings.Replace(message, "ORD-1", fmt.Sprint("ORD-", n), 1)
	}
	for range batches {
		all, arrived = new(sync.WaitGroup), 0
		all.Add(orders)
		_, err := h.Handle(t.Context(), batchOf(bodies...))
		must(t, err)
	}
	if got := len(opened); got < orders || got > orders+batches {
		t.Errorf("%d connections for %d batches of %d orders, want %d to %d", got, batches, orders, orders, orders+batches)
	}
}

func TestEveryFieldIsSet(t *testing.T) {
	t.Parallel()
	environ := complete(
		"STRIPE_TIMEOUT=3s", "ORDER_BUDGET=5s", "ANSWER_TIME=2s", "FIRST_DELAY=7s", "QUEUE_RETENTION=48h",
		"PARALLEL_ORDERS=4", "STOCK_TABLE=stock",
	)
	h, err := wire(t.Context(), environ, io.Discard)
	must(t, err)
	c, err := config.Read[environment](environ)
	must(t, err)
	p := newProcessor(c, new(ordertest.Memory), new(ordertest.Bank))
	for _, wired := range []any{*h, *p} {
		v := reflect.ValueOf(wired)
		for field := range v.Type().Fields() {
			if v.FieldByIndex(field.Index).IsZero() {
				t.Errorf("%T.%s is not set", wired, field.Name)
			}
		}
	}
	type durations struct{ OrderBudget, AnswerTime, FirstDelay, LongestDelay, Retention, ConfirmTime time.Duration }
	got := durations{
		h.OrderBudget, h.AnswerTime, h.Policy.FirstDelay, h.Policy.LongestDelay, h.Policy.Retention, p.ConfirmTime,
	}
	want := durations{5 * time.Second, 2 * time.Second, 7 * time.Second, 15 * time.Minute, 48 * time.Hour, 6 * time.Second}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("durations: got -, want +\n%s", diff)
	}
	if !h.Log.Enabled(t.Context(), slog.LevelInfo) || h.Log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("want level INFO: each order is a line of that level or above")
	}
	if h.Parallel != 4 || p.Scope != order.Scope("test") {
		t.Errorf("parallel = %d, scope = %q, want 4 and test", h.Parallel, p.Scope)
	}
}

// What Secrets Manager and Stripe's keys allow is tested in their adapters.
func TestAFunctionDoesNotStart(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{
		`{"SecretString":""}`:             "read secret " + secretARN + ": empty SecretString",
		`{"SecretString":"whsec_canary"}`: "secret " + secretARN + ": want a key that starts with sk_test_",
	} {
		var out output
		c := newCloud(t)
		c.secret = secret
		h, err := wire(t.Context(), c.environ("STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN="+secretARN), &out)
		if text := fmt.Sprint(err); h != nil || !strings.HasPrefix(text, want) || strings.Contains(out.String()+text, "canary") {
			t.Errorf("%s: got %v, %v, want no handler and %s", secret, h, err, want)
		}
	}
	if h, err := wire(t.Context(), complete("QUEUE_URL="), io.Discard); h != nil || err == nil {
		t.Errorf("handler = %v, error = %v, want an error of the environment", h, err)
	}
}

// Without jitter, all orders of an outage would be redelivered in the same second. Of
// 1,000 random numbers in [0, 1), fewer than 40 are in one tenth with a probability below
// 1e-10.
func TestOwnersAreNewAndJitterIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	h, err := wire(t.Context(), complete(), io.Discard)
	must(t, err)
	seen, tenths := map[string]bool{}, [10]int{}
	for range 1000 {
		owner, jitter := h.NewOwner(), h.Jitter()
		if len(owner) < 26 || seen[owner] || jitter < 0 || jitter >= 1 { // 26 characters of 5 bits each
			t.Fatalf("got owner %q and jitter %v, want 128 new random bits and a number in [0, 1)", owner, jitter)
		}
		seen[owner] = true
		tenths[int(jitter*10)]++
	}
	if slices.Min(tenths[:]) < 40 {
		t.Errorf("numbers in each tenth = %v, want about 100", tenths)
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
