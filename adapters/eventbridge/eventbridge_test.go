package eventbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/outbox"
)

const busName = "orders"

// serve starts a pretend EventBridge and ends it with the test.
func serve(t *testing.T, refuse func(eventbridgetest.Event) string) *eventbridgetest.Server {
	t.Helper()
	s, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: busName, Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func config(url string, client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}
}

// consumed returns an event as a consumer of the bus decodes it.
func consumed(t *testing.T, e eventbridgetest.Event) outbox.Event {
	t.Helper()
	decoded, err := eventbridge.Decode(string(e.Delivered()), "test")
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestBus(t *testing.T) {
	t.Parallel()
	ordertest.TestBus(t, func(t *testing.T) ordertest.BusUnderTest {
		t.Helper()
		refuse := map[order.ID]int{}
		s := serve(t, func(e eventbridgetest.Event) string {
			id := consumed(t, e).OrderID
			if refuse[id] == 0 {
				return ""
			}
			refuse[id]--
			return eventbridgetest.CodeInternal
		})
		return ordertest.BusUnderTest{
			Bus: eventbridge.New(config(s.URL, http.DefaultClient), busName, "test"),
			Accepted: func() (all []outbox.Event) {
				for _, e := range s.Archive() {
					all = append(all, consumed(t, e))
				}
				return all
			},
			Refuse: func(id order.ID) { refuse[id]++ },
			Fail:   func() { s.Fail(eventbridgetest.CodeThrottling, 1) },
		}
	})
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_790_000_000_020).In(time.FixedZone("CEST", 2*60*60))
	disputed := func(s order.DisputeStatus) order.Dispute { return order.Dispute{ID: "du_1", Status: s, CreatedAt: at} }
	for _, tt := range []struct {
		from, to order.Status
		dispute  order.Dispute
		want     string // detail-type and type
	}{
		{order.Open, order.Paid, order.Dispute{}, "Order Paid, order.paid"},
		{order.Open, order.Declined, order.Dispute{}, "Order Declined, order.declined"},
		{order.Open, order.Canceled, order.Dispute{}, "Order Canceled, order.canceled"},
		{order.Open, order.ActionRequired, order.Dispute{}, "Order Action Required, order.action_required"},
		{order.Open, order.Pending, order.Dispute{}, "Order Pending, order.pending"},
		{order.Open, order.Refused, order.Dispute{}, "Order Refused, order.refused"},
		{order.Refused, order.Open, order.Dispute{}, "Order Reopened, order.open"},
		{order.Paid, order.Paid, disputed(order.DisputeOpen), "Order Disputed, order.disputed"},
		{order.Paid, order.Paid, disputed(order.DisputeWon), "Order Dispute Won, order.dispute_won"},
		{order.Paid, order.Paid, disputed(order.DisputeLost), "Order Dispute Lost, order.dispute_lost"},
	} {
		s := serve(t, nil)
		bus := eventbridge.New(config(s.URL, http.DefaultClient), "arn:aws:events:us-east-1:1:event-bus/"+busName, "prod-eu")
		e := outbox.Event{
			OrderID: "ORD-1", Total: order.Money{Amount: 3998, Currency: "usd"},
			Event: order.Event{Seq: 1, From: tt.from, To: tt.to, Dispute: tt.dispute, At: at},
		}
		if failed, err := bus.Put(t.Context(), []outbox.Event{e}); err != nil || len(failed) > 0 {
			t.Fatalf("%s: got %v, %v", tt.want, failed, err)
		}
		detailType, eventType, _ := strings.Cut(tt.want, ", ")
		dispute, status := "", fmt.Sprintf("`%s`", tt.to)
		if tt.dispute.ID != "" {
			dispute, status = `"disputeId":"du_1",`, "as before"
		}
		want := []eventbridgetest.Event{{
			ID: s.Archive()[0].ID, Bus: "arn:aws:events:us-east-1:1:event-bus/orders", Source: "orderonce.prod-eu",
			DetailType: detailType, Time: at.UTC(),
			Detail: json.RawMessage(`{"version":1,"orderId":"ORD-1","seq":1,"type":"` + eventType + `","from":"` + string(tt.from) +
				`","status":"` + string(tt.to) + `","amount":3998,"currency":"usd",` + dispute + `"occurredAt":"2026-09-21T14:13:20.020Z"}`),
		}}
		if diff := cmp.Diff(s.Archive(), want); diff != "" {
			t.Errorf("event (-got +want):\n%s", diff)
		}
		if row := fmt.Sprintf("| `%s` | %s |", detailType, status); !strings.Contains(documents(t), row) {
			t.Errorf("events.md has no row %s", row)
		}
	}
}

func documents(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestTheDocuments compares docs/reference/events.md with an event of a declined order.
func TestTheDocuments(t *testing.T) {
	t.Parallel()
	page := documents(t)
	_, example, _ := strings.Cut(page, "```json\n")
	example, _, _ = strings.Cut(example, "```")
	s := serve(t, nil)
	bus := eventbridge.New(config(s.URL, http.DefaultClient), busName, "prod-eu")
	if _, err := bus.Put(t.Context(), []outbox.Event{{
		OrderID: "ORD-1001", Total: order.Money{Amount: 3998, Currency: "usd"},
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Event: order.Event{
			Seq: 2, From: order.Pending, To: order.Declined, Intent: "pi_3MtwBwLkdIwHu7ix28a3tqPa", Failure: "insufficient_funds",
			At: time.UnixMilli(1_790_000_000_020),
		},
	}}); err != nil {
		t.Fatal(err)
	}
	sent := s.Archive()[0]
	var got, documented map[string]any
	if err := errors.Join(json.Unmarshal(sent.Delivered(), &got), json.Unmarshal([]byte(example), &documented)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documented, got); diff != "" {
		t.Errorf("example (-documented +sent):\n%s", diff)
	}
	for field := range got["detail"].(map[string]any) {
		if !strings.Contains(page, "`detail."+field+"`") {
			t.Errorf("events.md has no row of detail.%s", field)
		}
	}
}

func TestAnUnknownBusDropsEventsWithoutAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	bus := eventbridge.New(config(s.URL, http.DefaultClient), "misspelled", "test")
	failed, err := bus.Put(t.Context(), ordertest.OutboxEvents(1)[:1])
	if len(failed) > 0 || err != nil || len(s.Archive()) > 0 || s.Calls() != 1 {
		t.Errorf("got %v, %v and %d events, want none and no error", failed, err, len(s.Archive()))
	}
}

// responds is a client of a server that always gives one response.
type responds string

func (r responds) Do(*http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(string(r)))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

func TestResponsesOfPutEvents(t *testing.T) {
	t.Parallel()
	const accepted = `{"EventId":"1"}`
	for claim, tt := range map[string]struct {
		response string
		failed   []int
		want     string // in the error
	}{
		"accepted": {`{"FailedEntryCount":0,"Entries":[` + accepted + `,` + accepted + `]}`, nil, ""},
		"the first refused entry is the reason": {
			`{"FailedEntryCount":2,"Entries":[{"ErrorCode":"InternalFailure","ErrorMessage":"sorry"},{"ErrorCode":"MalformedDetail"}]}`,
			[]int{0, 1},
			"event refused by the bus: InternalFailure: sorry",
		},
		"an entry is missing": {`{"FailedEntryCount":0,"Entries":[` + accepted + `]}`, nil, "1 entries for 2 events"},
		"the count differs": {
			`{"FailedEntryCount":1,"Entries":[` + accepted + `,` + accepted + `]}`, nil, "0 failed entries, counted 1",
		},
		"an entry has neither an id nor a code": {
			`{"FailedEntryCount":0,"Entries":[` + accepted + `,{}]}`, nil, "1 failed entries, counted 0",
		},
	} {
		bus := eventbridge.New(config("http://localhost", responds(tt.response)), busName, "test")
		failed, err := bus.Put(t.Context(), ordertest.OutboxEvents(2)[:2])
		if diff := cmp.Diff(failed, tt.failed); diff != "" {
			t.Errorf("%s: refused (-got +want):\n%s", claim, diff)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", claim, err, tt.want)
		}
		if refused := len(tt.failed) > 0; errors.Is(err, outbox.ErrRefused) != refused {
			t.Errorf("%s: got %v, want an error of an entry: %t", claim, err, refused)
		}
	}
}
