package watch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/scripts/local/system/systemtest"
)

// requests are what the store sends to DynamoDB for each step of an order, in the
// protocol's own words.
type requests struct {
	endpoint     string
	stock, plain *dynamodb.Store
	bodies       []dynamodbtest.Call
}

// newRequests returns a store in front of a table that accepts everything.
func newRequests(t *testing.T) *requests {
	t.Helper()
	r := &requests{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, operation, _ := strings.Cut(q.Header.Get("X-Amz-Target"), ".")
		body, _ := io.ReadAll(q.Body)
		r.bodies = append(r.bodies, dynamodbtest.Call{Operation: operation, Request: body})
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	config := dynamodbtest.Config(server.URL, func(string) string { return "" })
	r.endpoint, r.plain = server.URL, dynamodb.New(config, "orders")
	r.stock = r.plain.WithStock("stock")
	return r
}

func (r *requests) sent() dynamodbtest.Call { return r.bodies[len(r.bodies)-1] }

const body = `{"orderId":"ORD-1","customerId":"canary-customer","currency":"usd",` +
	`"lines":[{"sku":"SONG","quantity":2,"unitAmount":999}],` +
	`"payment":{"customer":"cus_canary","method":"pm_canary"}}`

func TestEachWriteOfTheStoreIsAStep(t *testing.T) {
	o, err := orders.NewDecoder().Decode(body)
	systemtest.Must(t, err)
	at := time.UnixMilli(1_767_225_600_000)
	lease := order.Lease{Owner: "owner-of-the-claim", From: at, Until: at.Add(time.Minute)}
	record := order.Record{
		OrderID: "ORD-1", Status: order.Open, Owner: lease.Owner, Until: lease.Until, Attempt: 1, Stock: o.Quantities(),
		Fingerprint: o.Fingerprint(),
	}
	unbound := order.NewClaim(record, o)
	record.Intent = "pi_1"
	claim := order.NewClaim(record, o)
	paid := order.Outcome{Status: order.Paid, Intent: "pi_1"}
	ctx := t.Context()
	for want, write := range map[Step]func(r *requests){
		Claim:        func(r *requests) { _, _ = order.Begin(ctx, r.plain, o, lease, nil) },
		Claim + " 2": func(r *requests) { _, _ = order.Begin(ctx, r.stock, o, lease, nil) },
		Bind:         func(r *requests) { _ = unbound.Bind(ctx, r.plain, order.Intent{ID: "pi_1"}, at) },
		Finish:       func(r *requests) { _ = claim.Finish(ctx, r.stock, paid, at) },
		Release:      func(r *requests) { _ = claim.Release(ctx, r.plain, order.ReasonOutOfTime, at) },
		Park: func(r *requests) {
			parked := record
			parked.ParkedAt, parked.LastError = at, string(order.ReasonConflict)
			_, _ = r.plain.Save(ctx, record, parked)
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			r := newRequests(t)
			write(r)
			got := parseWrite(r.sent())
			if want := Step(strings.TrimSuffix(string(want), " 2")); got.step != want || got.order != "ORD-1" {
				t.Errorf("got step %q of order %q, want %q of ORD-1", got.step, got.order, want)
			}
			if got.owner != lease.Owner {
				t.Errorf("got owner %q, want that of the claim", got.owner)
			}
			for _, secret := range []string{"canary", "owner-of-the-claim", string(o.Fingerprint())} {
				if strings.Contains(got.text, secret) {
					t.Errorf("the text shows %q:\n%s", secret, got.text)
				}
			}
		})
	}
}
