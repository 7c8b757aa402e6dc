package eventbridge_test

import (
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

func serve(t *testing.T, refuse func(eventbridgetest.Event) string) *eventbridgetest.Server {
	t.Helper()
	s, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: busName, Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func busAt(url, name string, client aws.HTTPClient) *eventbridge.Bus {
	return eventbridge.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: client, Credentials: aws.AnonymousCredentials{},
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}, name, "test")
}

// publish returns an event as EventBridge keeps it.
func publish(t *testing.T, e outbox.Event) eventbridgetest.Event {
	t.Helper()
	s := serve(t, nil)
	bus := busAt(s.URL, "arn:aws:events:us-east-1:1:event-bus/"+busName, http.DefaultClient)
	if failed, err := bus.Put(t.Context(), []outbox.Event{e}); err != nil || len(failed) > 0 {
		t.Fatalf("got %v, %v", failed, err)
	}
	return s.Archive()[0]
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
			Bus: busAt(s.URL, busName, http.DefaultClient),
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

// declined is the event of docs/reference/events.md.
func declined() outbox.Event {
	return outbox.Event{
		OrderID: "ORD-1001", Total: order.Money{Amount: 3998, Currency: "usd"},
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Event: order.Event{
			Seq: 2, From: order.Pending, To: order.Declined, Intent: "pi_3MtwBwLkdIwHu7ix28a3tqPa", Failure: "insufficient_funds",
			At: time.UnixMilli(1_790_000_000_020).UTC(),
		},
	}
}

// Each kind of event is published as the documents say, and decoded as it was published.
func TestEveryEventIsDocumentedAndDecoded(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/events.md")
	if err != nil {
		t.Fatal(err)
	}
	disputed := func(s order.DisputeStatus) func(*order.Event) {
		return func(e *order.Event) { e.To, e.Dispute = e.From, order.Dispute{ID: "du_1", Status: s} }
	}
	to := func(s order.Status) func(*order.Event) { return func(e *order.Event) { e.To = s } }
	for want, edit := range map[string]func(*order.Event){ // detail-type, type and documented status
		"Order Paid, order.paid, `paid`":                                  to(order.Paid),
		"Order Declined, order.declined, `declined`":                      to(order.Declined),
		"Order Canceled, order.canceled, `canceled`":                      to(order.Canceled),
		"Order Action Required, order.action_required, `action_required`": to(order.ActionRequired),
		"Order Pending, order.pending, `pending`":                         to(order.Pending),
		"Order Refused, order.refused, `refused`":                         to(order.Refused),
		"Order Reopened, order.open, `open`":                              to(order.Open),
		"Order Disputed, order.disputed, as before":                       disputed(order.DisputeOpen),
		"Order Dispute Won, order.dispute_won, as before":                 disputed(order.DisputeWon),
		"Order Dispute Lost, order.dispute_lost, as before":               disputed(order.DisputeLost),
		"Refund Succeeded, refund.succeeded, ": func(e *order.Event) {
			e.Refund = order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 1999}
		},
		"Order Refunded Outside, order.refunded_outside, ": func(e *order.Event) {
			e.Refund = order.RefundEvent{Status: order.RefundedOutside, Amount: 1}
		},
	} {
		e, parts := declined(), strings.Split(want, ", ")
		edit(&e.Event)
		sent := publish(t, e)
		if got := consumed(t, sent); sent.DetailType != parts[0] || e.Type() != parts[1] || !sent.Time.Equal(e.Event.At) {
			t.Errorf("%s: got %s of %s at %v: %+v", want, sent.DetailType, e.Type(), sent.Time, got)
		} else if diff := cmp.Diff(got, e); diff != "" {
			t.Errorf("%s (-got +want):\n%s", want, diff)
		}
		if row := fmt.Sprintf("| `%s` | %s", parts[0], parts[2]); !strings.Contains(string(page), row) {
			t.Errorf("events.md has no row %s", row)
		}
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.Replace(example, "orderonce.prod-eu", "orderonce.test", 1)
	var got, documented map[string]any
	sent := publish(t, declined()).Delivered()
	if err := errors.Join(json.Unmarshal(sent, &got), json.Unmarshal([]byte(example), &documented)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documented, got); diff != "" {
		t.Errorf("example (-documented +sent):\n%s", diff)
	}
	for field := range got["detail"].(map[string]any) {
		if !strings.Contains(string(page), "`detail."+field+"`") {
			t.Errorf("events.md has no row of detail.%s", field)
		}
	}
}

func TestAnInvalidEventIsRefusedWithoutItsValues(t *testing.T) {
	valid := string(publish(t, declined()).Delivered())
	if got := eventbridge.Source(valid); got != "orderonce.test" || eventbridge.Source("canary") != "" {
		t.Errorf("got source %q", got)
	}
	inZone := strings.Replace(valid, "14:13:20.020Z", "16:13:20.020+02:00", 1)
	if got, err := eventbridge.Decode(inZone, "test"); err != nil || got.Event.At != declined().Event.At {
		t.Errorf("a time in another zone: got %v, %v, want it in UTC", got.Event.At, err)
	}
	for claim, body := range map[string]string{
		"another scope":      strings.Replace(valid, "orderonce.test", "orderonce.other", 1),
		"another version":    strings.Replace(valid, `"version":1`, `"version":2`, 1),
		"an invalid id":      strings.Replace(valid, "ORD-1", "cänary", 1),
		"a day without time": strings.Replace(valid, "2026-09-21T14:13:20.020Z", "canary", 1),
		"an unknown type":    strings.Replace(valid, "order.declined", "order.shipped", 1),
		"no detail":          `{"source":"orderonce.test"}`,
		"no JSON":            "canary",
	} {
		if body == valid {
			t.Fatalf("%s: nothing replaced in %s", claim, valid)
		}
		if got, err := eventbridge.Decode(body, "test"); err == nil || strings.Contains(err.Error(), "anary") {
			t.Errorf("%s: got %+v, %v, want an error without the value", claim, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"source":"orderonce.test","detail":{"version":1,"orderId":"ORD-1","seq":1,"type":"order.paid","from":"open",` +
		`"status":"paid","amount":1,"currency":"usd","occurredAt":"2026-05-01T12:00:00.020Z"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if e, err := eventbridge.Decode(body, "test"); err == nil && !order.ValidID(string(e.OrderID)) {
			t.Errorf("got %+v of %q", e, body)
		}
	})
}

// responds is a client of a server that always gives one response.
type responds string

func (r responds) Do(*http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader(string(r)))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

func TestResponsesOfPutEvents(t *testing.T) {
	const accepted = `{"EventId":"1"}`
	for claim, tt := range map[string]struct {
		entries string
		failed  []int
		want    string // in the error
	}{
		"accepted": {accepted + `,` + accepted, nil, ""},
		"the first refused entry is the reason": {
			`{"ErrorCode":"InternalFailure","ErrorMessage":"sorry"},{"ErrorCode":"MalformedDetail"}`,
			[]int{0, 1},
			"event refused by the bus: InternalFailure: sorry",
		},
		"an entry has neither an id nor a code": {accepted + `,{}`, []int{1}, "event refused by the bus"},
		"an entry is missing":                   {accepted, nil, "1 entries for 2 events"},
	} {
		bus := busAt("http://localhost", busName, responds(`{"Entries":[`+tt.entries+`]}`))
		failed, err := bus.Put(t.Context(), ordertest.OutboxEvents(2)[:2])
		if diff := cmp.Diff(failed, tt.failed); diff != "" {
			t.Errorf("%s: refused (-got +want):\n%s", claim, diff)
		}
		if (err == nil) != (tt.want == "") || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: got error %v, want %q", claim, err, tt.want)
		}
		if refused := len(tt.failed) > 0; errors.Is(err, outbox.ErrRefused) != refused {
			t.Errorf("%s: got %v, want an error of an entry: %t", claim, err, refused)
		}
	}
}
