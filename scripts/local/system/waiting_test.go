package system_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// The settings of the function of the schedule in TestTenThousandOrdersWait, and the
// shards of its index.
const (
	lookRate  = 500 // STRIPE_RATE: less than a laptop can do, so that a run without a limit exceeds it
	lookLanes = 10  // PARALLEL_ORDERS
	shards    = 16
)

// TestTenThousandOrdersWait has more due orders than one run can look at, and kills the
// first run in the middle. The bank has cleared every tenth order meanwhile.
func TestTenThousandOrdersWait(t *testing.T) {
	t.Parallel()
	const orders, cleared = 10_000, 10
	w := world{systemtest.New(t)}
	k := &lookTrap{at: 1000}
	s := w.start(t, system.Options{
		Reconcile: w.Build(t, "functions/reconcile"), AfterStripe: k.afterStripe,
		Env: map[string]string{"STRIPE_RATE": strconv.Itoa(lookRate), "PARALLEL_ORDERS": strconv.Itoa(lookLanes)},
	})
	k.system.Store(s.System)
	s.fill(orders, cleared)
	pages := s.countPages()

	runs, died := 0, 0
	for ; runs < 60 && !strings.Contains(s.log.Text(), `"more":false`); runs++ {
		if _, err := s.Reconcile.Invoke(t.Context(), []byte("{}")); err != nil {
			died++
		}
	}
	if died == 0 || runs < 3 {
		t.Errorf("got %d runs, of which %d were killed, want several and one", runs, died)
	}
	// A run that dies leaves the orders that it looks at to the next one.
	again := died * lookLanes
	reads, writes := s.Stripe.Count(stripetest.Read), s.Proxy.Counts()["UpdateItem"]+s.Proxy.Counts()["TransactWriteItems"]
	if reads < orders || reads > orders+again || len(s.Stripe.Calls()) != reads {
		t.Errorf("got %d reads of %d calls to Stripe, want one read for each of %d orders", reads, len(s.Stripe.Calls()), orders)
	}
	if writes < orders || writes > orders+again {
		t.Errorf("got %d writes, want one for each of %d orders", writes, orders)
	}
	if got, most := int(pages.Load()), runs*shards+reads/100; got > most {
		t.Errorf("got %d pages of the index in %d runs, want at most %d", got, runs, most)
	}
	if calls, want := s.Proxy.Total(), reads+writes+int(pages.Load()); calls > want+again {
		t.Errorf("got %d calls to DynamoDB, want %d: a load and a write for each order, and the pages", calls, want)
	}
	if diff := cmp.Diff(s.statuses(), map[order.Status]int{order.Paid: orders / cleared, order.Pending: orders - orders/cleared}); diff != "" {
		t.Errorf("orders by status (-got +want):\n%s", diff)
	}
}

// lookTrap kills the function of the schedule at its at-th read of Stripe.
type lookTrap struct {
	at     int64
	reads  atomic.Int64
	system atomic.Pointer[system.System]
}

func (k *lookTrap) afterStripe(c stripetest.Call) {
	if c.Endpoint == stripetest.Read && k.reads.Add(1) == k.at {
		k.system.Load().Reconcile.Kill(nil)
	}
}

// countPages counts the pages of the index from now on, with a fault that never applies.
func (o *running) countPages() *atomic.Int64 {
	pages := new(atomic.Int64)
	o.Proxy.Fail(dynamodbtest.Fault{Operation: "Query", Match: func(body []byte) bool {
		if bytes.Contains(body, []byte(`"IndexName"`)) {
			pages.Add(1)
		}
		return false
	}})
	return pages
}

// fill puts orders that wait for their bank since a day into the table and into Stripe.
// The bank has cleared each order whose number is a multiple of cleared. The rows are
// copies of one that the store wrote.
func (o *running) fill(orders, cleared int) {
	o.t.Helper()
	const id = "order-00000"
	from := o.Stripe.Now().Add(-24 * time.Hour)
	o.pending(id, from)
	var original []system.Item
	for item, err := range o.Items(o.t.Context(), o.Options.Table) {
		must(o.t, err)
		original = append(original, item)
	}
	var copies []types.WriteRequest
	for n := range orders {
		id, intent := fmt.Sprintf("order-%05d", n), "pi_000001"
		if n > 0 {
			intent = o.processing(id, from)
		}
		if n%cleared == 0 {
			o.Stripe.Machine(func(m *stripetest.Machine) { must(o.t, m.Settle(from.Add(time.Hour), intent, true)) })
		}
		for _, item := range original {
			item = maps.Clone(item)
			item["orderId"], item["intentId"] = &types.AttributeValueMemberS{Value: id}, &types.AttributeValueMemberS{Value: intent}
			if item["openShard"] != nil {
				item["openShard"] = &types.AttributeValueMemberN{Value: strconv.Itoa(n % shards)}
			}
			copies = append(copies, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
	}
	for batch := range slices.Chunk(copies, 25) {
		out, err := o.table().BatchWriteItem(o.t.Context(), &sdk.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{o.Options.Table: batch},
		})
		must(o.t, err)
		if n := len(out.UnprocessedItems); n > 0 {
			o.t.Fatalf("got %d unprocessed items, want none", n)
		}
	}
}

// pending puts an order that waits for its bank into the table and into Stripe.
func (o *running) pending(id string, from time.Time) {
	o.t.Helper()
	ctx := o.t.Context()
	draft, err := orders.NewDecoder().Decode(bodyWith(id, takesDays))
	must(o.t, err)
	claim, err := order.Begin(ctx, o.Store, draft, order.Lease{Owner: id, From: from, Until: from.Add(time.Minute)}, nil)
	must(o.t, err)
	bound := order.Intent{ID: order.IntentID(o.processing(id, from)), Mode: order.TestMode}
	pending := order.Outcome{Status: order.Pending, Intent: bound.ID}
	must(o.t, errors.Join(claim.Bind(ctx, o.Store, bound, from), claim.Finish(ctx, o.Store, pending, from)))
}

// processing creates an intent that its bank has not cleared, for the amount of body.
func (o *running) processing(id string, from time.Time) (intent string) {
	o.t.Helper()
	form := url.Values{
		"amount": {"3998"}, "currency": {"usd"}, "customer": {"cus_Test"}, "payment_method": {"pm_usBankAccount_processing"},
		"metadata[orderId]": {id}, "metadata[scope]": {system.Scope}, "confirm": {"true"}, "off_session": {"true"},
	}
	o.Stripe.Machine(func(m *stripetest.Machine) {
		created := m.Do(from, stripetest.Request{
			Method: http.MethodPost, Path: "/v1/payment_intents", APIKey: system.PretendKey, Key: id, Form: form,
		})
		if created.Intent == nil {
			o.t.Fatalf("create the intent of %s: %+v", id, created.Error)
		}
		intent = created.Intent.ID
	})
	return intent
}
