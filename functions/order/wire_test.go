package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	"orderonce/functions/internal/functiontest"
)

// message is the body of a valid order, and owner the owner of its claim.
const (
	message = `{"orderId":"ORD-1","customerId":"CUST-1","currency":"usd","lines":[{"sku":"MUG","quantity":1,"unitAmount":1250}],` +
		`"payment":{"customer":"cus_canary","method":"pm_canary"}}`
	owner = "owner-1"
)

// newCloud serves a cloud with a response of Secrets Manager.
func newCloud(t *testing.T, secret string) *functiontest.Cloud {
	t.Helper()
	return functiontest.Serve(t, func(call, body string) string {
		switch operation, queue, _ := strings.Cut(call, " "); operation {
		case "DynamoDB_20120810.UpdateItem":
			return claimed()
		case "AmazonSQS.GetQueueAttributes":
			return settings(queue)
		case "secretsmanager.GetSecretValue":
			return secret
		}
		if strings.HasPrefix(call, "POST ") && !strings.Contains(body, "metadata[scope]=test") {
			t.Errorf("%s: got %s, want the scope of SCOPE", call, body)
		}
		return ""
	})
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
		"AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/live",
		"AmazonSQS.GetQueueAttributes https://sqs.example/1/dead", // once in the life of a process
		"AmazonSQS.GetQueueAttributes https://sqs.example/1/live",
		"AmazonSQS.SendMessage https://sqs.example/1/dead",
		"DynamoDB_20120810.UpdateItem orders", // claim
		"DynamoDB_20120810.UpdateItem orders", // release
	}
	for claim, tt := range map[string]struct {
		secret  string
		changes []string
		more    []string
	}{
		"every call goes where the environment says": {more: []string{"POST /v1/payment_intents sk_test_canary"}},
		"the key comes from the secret": {
			secret:  `{"SecretString":"rk_test_secret\n"}`,
			changes: []string{"STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN=" + secretARN},
			more:    []string{"POST /v1/payment_intents rk_test_secret", "secretsmanager.GetSecretValue " + secretARN},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var out functiontest.Output
			c := newCloud(t, tt.secret)
			h, err := wire(t.Context(), functiontest.Environ(c.URL, tt.changes...), &out)
			functiontest.Must(t, err)
			h.NewOwner = func() string { return owner }
			answer, err := h.Handle(t.Context(), functiontest.Batch(message, "no order"))
			h.Settings.Wait()
			want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{{ItemIdentifier: "m-1"}}}
			if diff := cmp.Diff(answer, want); err != nil || diff != "" {
				t.Errorf("error = %v; response: got -, want +\n%s\n%s", err, diff, &out)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.Calls())), append(slices.Clone(shared), tt.more...)); diff != "" {
				t.Errorf("calls: got -, want +\n%s", diff)
			}
			if part := out.Lacks(
				`"Namespace":"orderonce"`, `"Scope":"test"`, `"CallLatency"`,
				`"Call":"POST /v1/payment_intents"`, `"Call":"DynamoDB_20120810.UpdateItem"`,
				`"Call":"AmazonSQS.SendMessage"`, `{"Name":"WaitingAge","Unit":"Milliseconds"}`,
				`"reason":"provider_unavailable"`, `"reason":"invalid_order"`,
			); part != "" || strings.Contains(out.String(), "rk_test_secret") {
				t.Errorf("want %q in the output, and no secret:\n%s", part, &out)
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
	c := newCloud(t, "")
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
	h, err := wire(t.Context(), functiontest.Environ(c.URL, "PARALLEL_ORDERS=4", "STRIPE_API_BASE="+stripe.URL), io.Discard)
	functiontest.Must(t, err)
	h.Settings, h.NewOwner = nil, func() string { return owner }
	bodies := make([]string, orders)
	for n := range bodies {
		bodies[n] = strings.Replace(message, "ORD-1", fmt.Sprint("ORD-", n), 1)
	}
	for range batches {
		all, arrived = new(sync.WaitGroup), 0
		all.Add(orders)
		_, err := h.Handle(t.Context(), functiontest.Batch(bodies...))
		functiontest.Must(t, err)
	}
	if got := len(opened); got < orders || got > orders+batches {
		t.Errorf("%d connections for %d batches of %d orders, want %d to %d", got, batches, orders, orders, orders+batches)
	}
}

func TestEveryFieldIsSet(t *testing.T) {
	t.Parallel()
	environ := functiontest.Environ("",
		"STRIPE_TIMEOUT=3s", "ORDER_BUDGET=5s", "ANSWER_TIME=2s", "FIRST_DELAY=7s", "QUEUE_RETENTION=48h",
		"PARALLEL_ORDERS=4", "STOCK_TABLE=stock",
	)
	h, err := wire(t.Context(), environ, io.Discard)
	functiontest.Must(t, err)
	c, err := config.Read[environment](environ)
	functiontest.Must(t, err)
	p := newProcessor(c, new(ordertest.Memory), new(ordertest.Bank))
	for _, wired := range []any{*h, *p} {
		if unset := functiontest.Unset(wired); len(unset) > 0 {
			t.Errorf("%T: not set are %q", wired, unset)
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
		var out functiontest.Output
		environ := functiontest.Environ(newCloud(t, secret).URL, "STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN="+secretARN)
		h, err := wire(t.Context(), environ, &out)
		if text := fmt.Sprint(err); h != nil || !strings.HasPrefix(text, want) || strings.Contains(out.String()+text, "canary") {
			t.Errorf("%s: got %v, %v, want no handler and %s", secret, h, err, want)
		}
	}
	if h, err := wire(t.Context(), functiontest.Environ("", "QUEUE_URL="), io.Discard); h != nil || err == nil {
		t.Errorf("handler = %v, error = %v, want an error of the environment", h, err)
	}
}

// Without jitter, all orders of an outage would be redelivered in the same second. Of
// 1,000 random numbers in [0, 1), fewer than 40 are in one tenth with a probability below
// 1e-10.
func TestOwnersAreNewAndJitterIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	h, err := wire(t.Context(), functiontest.Environ(""), io.Discard)
	functiontest.Must(t, err)
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
