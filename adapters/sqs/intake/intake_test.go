package intake_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/intake"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func open(t *testing.T, name string) (*sqstest.Server, *intake.Sender) {
	t.Helper()
	now := time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	server, err := sqstest.Serve(sqstest.Options{Now: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	server.Machine(func(m *sqstest.Machine, now time.Time) { must(t, m.Create(now, name, sqstest.DefaultSettings())) })
	return server, intake.NewSender(aws.Config{
		Region: sqstest.Region, BaseEndpoint: &server.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.AnonymousCredentials{},
	}, server.QueueURL(name))
}

func messages(t *testing.T, server *sqstest.Server, queue string) (all []sqstest.Message) {
	t.Helper()
	server.Machine(func(m *sqstest.Machine, now time.Time) {
		var err error
		all, err = m.Messages(now, queue)
		must(t, err)
	})
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const trace order.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// Sending twice makes two messages of a standard queue, and one of a FIFO queue.
func TestASentOrderIsDecodedAsTheSame(t *testing.T) {
	sent, err := order.New(order.Draft{
		ID: "ORD12345", CustomerID: `<&\">`, Currency: "usd",
		Lines:   []order.Line{{SKU: "TSHIRT-M", Quantity: 2, UnitAmount: 1999}, {SKU: "BAG", Quantity: 1}},
		Payment: order.Payment{Customer: "cus_NffrFeUfNV2Hib", Method: "pm_1MqLiJLkdIwHu7ix"},
	})
	must(t, err)
	first := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for queue, tt := range map[string]struct {
		trace order.Trace
		want  map[string]string
		group string
		count int
	}{
		"orders":      {trace, map[string]string{sqs.AttrTrace: string(trace)}, "", 2},
		"orders.fifo": {"", map[string]string{}, "ORD12345", 1},
	} {
		t.Run(queue, func(t *testing.T) {
			server, sender := open(t, queue)
			for range 2 {
				must(t, sender.Send(t.Context(), sent, first, tt.trace))
			}
			all := messages(t, server, queue)
			if len(all) != tt.count {
				t.Fatalf("got %d messages, want %d", len(all), tt.count)
			}
			got, err := orders.NewDecoder().Decode(all[0].Body)
			if diff := cmp.Diff(got, sent, cmp.AllowUnexported(order.Order{})); err != nil || diff != "" {
				t.Errorf("%v (-got +want):\n%s", err, diff)
			}
			texts := map[string]string{}
			for name, a := range all[0].Attributes {
				texts[name] = a.Text
			}
			tt.want[sqs.AttrFirstSent] = "2100-01-01T00:00:00Z"
			if diff := cmp.Diff(texts, tt.want); diff != "" || all[0].Group != tt.group {
				t.Errorf("got group %q, want %q; attributes (-got +want):\n%s", all[0].Group, tt.group, diff)
			}
		})
	}
}

func TestSendReturnsTheErrorOfTheQueue(t *testing.T) {
	server, sender := open(t, "orders")
	server.Fail("SendMessage", 10, "InternalError")
	err := sender.Send(t.Context(), ordertest.Order("A"), time.Unix(0, 0), "")
	if _, isAPI := errors.AsType[smithy.APIError](err); !isAPI || len(messages(t, server, "orders")) > 0 {
		t.Errorf("got %v, want the error of SQS", err)
	}
}

func TestAnOrderIsDecodedUnderItsID(t *testing.T) {
	const id = "ORD12345"
	with := bodytest.OrderWith
	withoutID := with(`"orderId":"ORD12345",`, "")
	const otherID = "want the id of the request, or none"
	want, err := orders.NewDecoder().Decode(bodytest.Order)
	must(t, err)
	decode := intake.NewDecoder()
	for claim, tt := range map[string]struct{ body, id, err string }{
		"without an id":    {withoutID, id, ""},
		"with null for it": {with(`"ORD12345"`, "null"), id, "message body: orderId: want a string"},
		"with the same id": {bodytest.Order, id, ""},
		"with its type":    {with(`{"orderId"`, `{"type":"order","orderId"`), id, ""},
		"with an empty id": {with(id, ""), id, `invalid order: orderId "": ` + otherID},
		"with another id, and other problems": {
			strings.Replace(with(id, "ORD-2"), "usd", "USD", 1), id,
			`invalid order: orderId "ORD-2": ` + otherID + `; currency "USD": want ` + order.CurrencyRule,
		},
		"another id than an invalid one": {bodytest.Order, "a b", `invalid order: orderId "ORD12345": ` + otherID},
		"an invalid id of a request":     {withoutID, "a b", "invalid order: orderId [withheld: length 3, with ' ']: want " + order.NewIDRule},
		"a refund":                       {bodytest.Refund, id, `message body: type: want "order"; send refunds to the refund queue`},
		"an event":                       {bodytest.FromEventBridge(bodytest.Order), id, `message body: unknown field "version"`},
	} {
		t.Run(claim, func(t *testing.T) {
			got, err := decode(tt.body, tt.id)
			switch {
			case tt.err != "" && (err == nil || err.Error() != tt.err || got.ID() != ""):
				t.Errorf("got order %q, %v, want %s", got.ID(), err, tt.err)
			case tt.err == "" && (err != nil || got.Fingerprint() != want.Fingerprint()):
				t.Errorf("got %+v, %v, want the order of the message", got, err)
			}
		})
	}
}
