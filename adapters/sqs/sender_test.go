package sqs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/intake"
	"orderonce/domain/order"
)

var _ intake.Queue = (*sqs.Sender)(nil)

func TestASentOrderIsDecodedAsTheSame(t *testing.T) {
	t.Parallel()
	const body = `{"orderId":"ORD12345","customerId":"<&\">","currency":"usd",` +
		`"lines":[{"sku":"TSHIRT-M","quantity":2,"unitAmount":1999},{"sku":"BAG","quantity":1,"unitAmount":0}],` +
		`"payment":{"customer":"cus_NffrFeUfNV2Hib","method":"pm_1MqLiJLkdIwHu7ix"}}`
	const trace order.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for claim, tt := range map[string]struct {
		world *world
		trace order.Trace
		want  map[string]string
		group string
	}{
		"to a standard queue":           {newWorld(t), "", map[string]string{}, ""},
		"to a standard queue, traced":   {newWorld(t), trace, map[string]string{sqs.AttrTrace: string(trace)}, ""},
		"to a FIFO queue, in its group": {newFIFOWorld(t), "", map[string]string{}, "ORD12345"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := tt.world
			sent, err := sqs.NewDecoder().Decode(body)
			w.must(err)
			w.must(w.sender().Send(t.Context(), sent, w.Now().Add(-day), tt.trace))
			messages := w.messages(w.orders)
			if len(messages) != 1 {
				t.Fatalf("got %d messages, want one", len(messages))
			}
			got, err := sqs.NewDecoder().Decode(messages[0].Body)
			if err != nil || got.Fingerprint() != sent.Fingerprint() || got.Total() != sent.Total() {
				t.Errorf("got %+v, %v, want %+v", got, err, sent)
			}
			tt.want[sqs.AttrFirstSent] = w.Now().Add(-day).Format(time.RFC3339)
			if diff := cmp.Diff(texts(messages[0]), tt.want); diff != "" || messages[0].Group != tt.group {
				t.Errorf("got group %q, want %q; attributes (-got +want):\n%s", messages[0].Group, tt.group, diff)
			}
		})
	}
}

func TestAnOrderSentTwiceToAFIFOQueueIsOneMessage(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	o, err := sqs.NewDecoder().Decode(good)
	w.must(err)
	w.must(w.sender().Send(t.Context(), o, w.Now(), ""))
	w.must(w.sender().Send(t.Context(), o, w.Now(), ""))
	if n := len(w.messages(w.orders)); n != 1 {
		t.Errorf("got %d messages, want one", n)
	}
}

func TestSendReturnsTheErrorOfTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Fail("SendMessage", 10, "InternalError")
	o, err := sqs.NewDecoder().Decode(good)
	w.must(err)
	err = w.sender().Send(t.Context(), o, w.Now(), "")
	if _, isAPI := errors.AsType[smithy.APIError](err); !isAPI || len(w.messages(w.orders)) > 0 {
		t.Errorf("got %v, want the error of SQS", err)
	}
}
