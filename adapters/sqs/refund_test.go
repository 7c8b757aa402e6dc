package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// goodRefund is the refund of docs/reference/message.md, as one line.
const goodRefund = `{"type":"refund","orderId":"ORD12345","refundId":"R-1","amount":1999,"reason":"requested_by_customer"}`

// refundWith returns the good refund after one replacement.
func refundWith(old, replacement string) string {
	if strings.Count(goodRefund, old) != 1 {
		panic("not once in the good refund: " + old)
	}
	return strings.Replace(goodRefund, old, replacement, 1)
}

// typed returns the good order with a field "type".
func typed(value string) string { return `{"type":` + value + `,` + good[1:] }

func TestDecodeJobReadsARefundInEveryWrapper(t *testing.T) {
	t.Parallel()
	draft := refund.Draft{OrderID: "ORD12345", RefundID: "R-1", Amount: 1999, Reason: "requested_by_customer"}
	want, err := refund.New(draft)
	if err != nil {
		t.Fatal(err)
	}
	decoder := sqs.NewDecoder()
	for _, body := range []string{
		goodRefund, fromEventBridge(goodRefund), fromSNS(goodRefund), fromSNS(fromEventBridge(goodRefund)),
	} {
		got, err := decoder.DecodeJob(body)
		if diff := cmp.Diff(got, sqs.Job{Refund: want}, unexported()); err != nil || diff != "" {
			t.Errorf("%.40s: %v (-got +want):\n%s", body, err, diff)
		}
		if o, err := decoder.Decode(body); err == nil || err.Error() != "message body: a refund: want an order" {
			t.Errorf("Decode: got order %q, %v, want the error that it is a refund", o.ID(), err)
		}
	}
	named, err := decoder.DecodeJob(refundWith(`"amount"`, `"currency":"eur","amount"`))
	if err != nil || named.Refund.Currency() != "eur" || named.Refund.Fingerprint() != want.Fingerprint() {
		t.Errorf("with a currency: got %+v, %v, want the same refund in eur", named, err)
	}
}

//nolint:ireturn // as the function that it calls
func unexported() cmp.Option { return cmp.AllowUnexported(order.Order{}, refund.Request{}) }

func TestAMessageWithoutATypeIsAnOrder(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	want, err := decoder.Decode(good)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{good, typed(`"order"`), fromEventBridge(typed(`"order"`)), fromSNS(typed(` "order" `))} {
		got, err := decoder.DecodeJob(body)
		if diff := cmp.Diff(got, sqs.Job{Order: want}, unexported()); err != nil || diff != "" {
			t.Errorf("%.40s: %v (-got +want):\n%s", body, err, diff)
		}
	}
}

// notRefunds returns bodies that are neither an order nor a refund.
func notRefunds() []badBody {
	const (
		wantType   = `message body: type: want "order" or "refund"`
		wantAmount = "want 1 to 999999999999"
		wantReason = `want "duplicate", "fraudulent" or "requested_by_customer"`
	)
	return []badBody{
		{"another type", refundWith(`"refund"`, `"reversal"`), wantType},
		{"a type in another case", refundWith(`"refund"`, `"Refund"`), wantType},
		{"an empty type", refundWith(`"refund"`, `""`), wantType},
		{"null for the type", refundWith(`"refund"`, `null`), wantType},
		{"a list for the type", refundWith(`"refund"`, `["refund"]`), wantType},
		{"an escape in the type", refundWith(`"refund"`, `"\u0072efund"`), wantType},
		{"an order of another type", typed(`"sale"`), wantType},
		{"an order with null for its type", typed(`null`), wantType},
		{"a card number for the type", typed(cardNumber), wantType},
		{"a refund without a type", refundWith(`"type":"refund",`, ""), `message body: unknown field "refundId"`},
		{"a refund that says order", refundWith(`"refund"`, `"order"`), `message body: unknown field "refundId"`},
		{"an order that says refund", typed(`"refund"`), `message body: unknown field "customerId"`},
		{"an order whose type has an escape", strings.Replace(typed(`"refund"`), "type", `\u0074ype`, 1), `message body: unknown field "type"`},
		{"the type in another case", refundWith(`"type"`, `"Type"`), `message body: unknown field "Type"`},
		{"two types", refundWith(`"type"`, `"type":"order","type"`), `message body: duplicate field "type"`},
		{"two types, one in another case", refundWith(`"type"`, `"Type":"order","type"`), `message body: unknown field "Type": want "type"`},

		{"a truncated refund", goodRefund[:len(goodRefund)-1], "message body: truncated JSON"},
		{"two refunds", goodRefund + goodRefund, "message body: trailing data after the JSON object at byte 102"},
		{"a list of a refund", "[" + goodRefund + "]", "message body: not a JSON object"},
		{"too large", strings.Repeat(" ", sqs.MaxBody) + goodRefund, "message body: too large: 262246 bytes, want at most 262144"},
		{"an unknown field", refundWith(`"amount"`, `"tip":1,"amount"`), `message body: unknown field "tip"`},
		{"an empty currency", refundWith(`"amount"`, `"currency":"","amount"`), `invalid refund: currency "": want ` + order.CurrencyRule},
		{
			"a currency in upper case", refundWith(`"amount"`, `"currency":"USD","amount"`),
			`invalid refund: currency "USD": want ` + order.CurrencyRule,
		},
		{"a number for the currency", refundWith(`"amount"`, `"currency":840,"amount"`), "message body: currency: want a string"},
		{"a field of another case", refundWith(`"refundId"`, `"refundID"`), `message body: unknown field "refundID": want "refundId"`},
		{"a field twice", refundWith(`"reason"`, `"amount":1,"reason"`), `message body: duplicate field "amount"`},
		{"an unknown field in an event", fromEventBridge(refundWith(`"amount"`, `"tip":1,"amount"`)), `message body: unknown field "tip"`},
		{
			"a refund's field beside the event", strings.Replace(fromEventBridge(goodRefund), `"account"`, `"refundId":"R-2","account"`, 1),
			`message body: unknown field "version"`,
		},
		{"a wrapper in a refund", refundWith(`"amount"`, `"detail-type":"x","detail":{},"amount"`), `message body: unknown field "detail-type"`},

		{"a fraction", refundWith("1999", "19.99"), "message body: amount: " + wantInteger},
		{"an exponent", refundWith("1999", "1e3"), "message body: amount: " + wantInteger},
		{"a quoted amount", refundWith("1999", `"1999"`), "message body: amount: " + wantInteger},
		{"an amount beyond 64 bits", refundWith("1999", "9223372036854775808"), "message body: amount: " + wantInteger},
		{"a number for the id", refundWith(`"R-1"`, "1"), "message body: refundId: want a string"},
		{"a list for the reason", refundWith(`"requested_by_customer"`, `[]`), "message body: reason: want a string"},

		{"no amount", refundWith(`"amount":1999,`, ""), "invalid refund: amount: " + missing},
		{"null for the amount", refundWith("1999", "null"), "invalid refund: amount: " + missing},
		{"nothing to give back", refundWith("1999", "0"), "invalid refund: amount 0: " + wantAmount},
		{"a negative amount", refundWith("1999", "-1999"), "invalid refund: amount -1999: " + wantAmount},
		{"an amount of thirteen digits", refundWith("1999", "1000000000000"), "invalid refund: amount [withheld: 13 digits]: " + wantAmount},
		{"no reason", refundWith(`,"reason":"requested_by_customer"`, ""), `invalid refund: reason "": ` + wantReason},
		{
			"a reason of Stripe's own", refundWith("requested_by_customer", "expired_uncaptured_charge"),
			`invalid refund: reason "expired_uncaptured_charge": ` + wantReason,
		},
		{"no refund id", refundWith(`"refundId":"R-1",`, ""), `invalid refund: refundId "": ` + wantAnyID},
		{"a refund id with a slash", refundWith("R-1", "R/1"), `invalid refund: refundId [withheld: length 3, with '/']: ` + wantAnyID},
		{"no order id", refundWith(`"orderId":"ORD12345",`, ""), `invalid refund: orderId "": ` + wantAnyID},
		{"several problems", `{"type":"refund"}`, strings.Join([]string{
			`invalid refund: orderId "": ` + wantAnyID, `refundId "": ` + wantAnyID, "amount: " + missing, `reason "": ` + wantReason,
		}, "; ")},
		{
			"a card number for the reason", refundWith("requested_by_customer", cardNumber),
			"invalid refund: reason [withheld: length 16, with 16 digits]: " + wantReason,
		},
	}
}

func TestDecodeJobRejects(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	for _, bad := range notRefunds() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			got, err := decoder.DecodeJob(bad.body)
			if err == nil {
				t.Fatalf("got %+v, want an error", got)
			}
			if diff := cmp.Diff(err.Error(), bad.want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(got, sqs.Job{}, unexported()); diff != "" {
				t.Errorf("a job beside the error (-got +want):\n%s", diff)
			}
		})
	}
}

// The validator's tags and refund.New have the same limits, and must return the same
// errors.
func TestDecodeJobAgreesWithTheDomain(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.SampledFrom([]string{"A", "", "-x", strings.Repeat("x", 64), strings.Repeat("x", 65)}), rapid.String())
		d := refund.Draft{
			OrderID: id.Draw(t, "orderId"), RefundID: id.Draw(t, "refundId"),
			Amount: rapid.OneOf(
				rapid.SampledFrom([]int64{-1, 0, 1, refund.MaxAmount, refund.MaxAmount + 1}), rapid.Int64(),
			).Draw(t, "amount"),
			Reason: rapid.SampledFrom([]string{"duplicate", "fraudulent", "requested_by_customer", "", "other"}).Draw(t, "reason"),
		}
		body, err := json.Marshal(map[string]any{
			"type": "refund", "orderId": d.OrderID, "refundId": d.RefundID, "amount": d.Amount, "reason": d.Reason,
		})
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := refund.New(d)
		got, err := decoder.DecodeJob(string(body))
		if diff := cmp.Diff(problems(t, err), problems(t, wantErr)); diff != "" {
			t.Fatalf("mismatch (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(got.Refund, want, unexported()); diff != "" {
			t.Fatalf("mismatch (-got +want):\n%s", diff)
		}
	})
}

// The canary is also put into the fields of a refund.
func FuzzDecodeJob(f *testing.F) {
	for _, bad := range notRefunds() {
		if len(bad.body) < 4096 {
			f.Add(bad.body)
		}
	}
	for _, body := range []string{
		good, typed(`"order"`), goodRefund, fromEventBridge(goodRefund), fromSNS(goodRefund), fromSNS(fromEventBridge(goodRefund)),
	} {
		f.Add(body)
	}
	decoder := sqs.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := decoder.DecodeJob(body)
		if err != nil {
			isDecodeError(t, err)
		} else if again, err := decoder.DecodeJob(canonical(t, body)); err != nil || !cmp.Equal(again, got, unexported()) {
			t.Errorf("in canonical JSON it is %+v (%v), want %+v", again, err, got)
		}
		for _, planted := range plantInRefund(body) {
			_, err := decoder.DecodeJob(planted)
			if err == nil {
				t.Fatalf("%s was accepted", planted)
			}
			isDecodeError(t, err)
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error contains a value of the message: %v", err)
			}
		}
	})
}

// plantInRefund puts the canary into the values and the names of an unwrapped body.
func plantInRefund(body string) (all []string) {
	var fields map[string]any
	if strings.Contains(body, "canary") || strings.Contains(body, "detail") || strings.Contains(body, "Message") ||
		len(body) > 1<<12 || json.Unmarshal([]byte(body), &fields) != nil || fields == nil {
		return nil
	}
	for _, field := range []string{"type", "orderId", "refundId", "amount", "reason", canary} {
		for _, value := range []any{canary, []string{canary}, map[string]any{canary: 1}} {
			planted := maps.Clone(fields)
			planted[field] = value
			if text, err := json.Marshal(planted); err == nil {
				all = append(all, string(text))
			}
		}
	}
	return all
}

// refunding is one call of Refund.
type refunding struct {
	Order  order.ID
	Refund refund.ID
	Lease  order.Lease
}

// refund records the call and returns the scripted result of the refund's id.
func (w *world) refund(_ context.Context, r refund.Request, l order.Lease) order.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refunds = append(w.refunds, refunding{r.OrderID(), r.ID(), l})
	if result, scripted := w.script[order.ID(r.ID())]; scripted {
		return result
	}
	return paid()
}

func refundWithID(id string) string { return refundWith("R-1", id) }

func notCharged() order.Result {
	return order.Result{
		Verdict: order.Redeliver, Reason: refund.ReasonNotCharged, Transient: true, Err: &refund.NotChargedError{Status: order.Open},
	}
}

func TestARefundIsPassedOnWithALeaseAndReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.send(goodRefund)[0]
	if failed := w.deliverWithin(30*time.Second, w.receive()); len(failed) > 0 {
		t.Errorf("batch item failures: got %q, want none", failed)
	}
	want := []refunding{{"ORD12345", "R-1", order.Lease{Owner: "owner-0", From: start(), Until: start().Add(30 * time.Second)}}}
	if diff := cmp.Diff(w.refunds, want); diff != "" || len(w.processed()) > 0 {
		t.Errorf("orders %v; refunds (-got +want):\n%s", w.processed(), diff)
	}
	line := w.line("order_id", "ORD12345")
	wantLine := map[string]any{
		"level": "INFO", "msg": "order", "order_id": "ORD12345", "refund_id": "R-1", "message_id": id, "delivery": 1.0,
		"attempt": 1.0, "status": "paid", "verdict": "done", "reason": "settled", "intent_id": "pi_1", "request_id": "request-1",
	}
	if diff := cmp.Diff(line, wantLine); diff != "" {
		t.Errorf("log line (-got +want):\n%s", diff)
	}
}

// Settled and OrderAge count orders alone.
func TestRefundsAreCountedApartFromOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["NO"] = order.Result{Verdict: order.Done, Reason: refund.ReasonRefused}
	w.script["AGAIN"] = order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate}
	w.script["UNPAID"] = notCharged()
	w.script["MAYBE"] = order.Result{Verdict: order.Park, Reason: refund.ReasonUnknown}
	for _, id := range []string{"R-1", "NO", "AGAIN", "UNPAID", "MAYBE"} {
		w.send(refundWithID(id))
	}
	w.deliverVisible()
	got := map[string]int{}
	for _, metric := range []string{
		"Received", "Settled", "OrderAge", "Refunds", "Refunds settled", "Refunds refund_refused", "Duplicates",
		"Redelivered not_charged", "Parked refund_unknown",
	} {
		got[metric] = w.counted(metric)
	}
	want := map[string]int{
		"Received": 5, "Settled": 0, "OrderAge": 0, "Refunds": 2, "Refunds settled": 1, "Refunds refund_refused": 1, "Duplicates": 1,
		"Redelivered not_charged": 1, "Parked refund_unknown": 1,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}

// An older release may have charged an order with such an id.
func TestAnOrderNamedByACardNumberCanBeRefunded(t *testing.T) {
	t.Parallel()
	body := strings.Replace(goodRefund, "ORD12345", cardNumber, 1)
	job, err := sqs.NewDecoder().DecodeJob(body)
	if err != nil || job.Refund.OrderID() != cardNumber {
		t.Errorf("DecodeJob = %+v, %v, want the refund", job, err)
	}
}

func TestTheChargeAndTheRefundsOfAnOrderRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := strings.Replace(goodRefund, "ORD12345", "ORD-2", 1)
	w.send(good, refundWithID("R-1"), other, refundWithID("R-2"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var running []string
		gate := make(chan struct{})
		run := func(name string) order.Result {
			mu.Lock()
			running = append(running, name)
			mu.Unlock()
			<-gate
			return paid()
		}
		w.Process = func(_ context.Context, o order.Order, _ time.Time, _ order.Lease) order.Result {
			return run("charge " + string(o.ID()))
		}
		w.Refund = func(_ context.Context, r refund.Request, _ order.Lease) order.Result {
			return run(fmt.Sprintf("refund %s of %s", r.ID(), r.OrderID()))
		}
		go func() { _, _ = w.Handle(t.Context(), e) }()
		// The other order's refund runs beside the charge.
		want := []string{"charge ORD12345", "refund R-1 of ORD-2", "refund R-1 of ORD12345", "refund R-2 of ORD12345"}
		for _, n := range []int{2, 3, 4} {
			synctest.Wait()
			if diff := cmp.Diff(slices.Sorted(slices.Values(running)), want[:n]); diff != "" {
				t.Errorf("started (-got +want):\n%s", diff)
			}
			if n == 2 {
				gate <- struct{}{} // of the other order
			}
			gate <- struct{}{}
		}
	})
}

// The row of a paid order must not say that its message was parked.
func TestAParkedRefundIsNotNotedInItsOrdersRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["BIG"] = order.Result{Verdict: order.Park, Reason: refund.ReasonExceeds, Err: &refund.ExceedsError{Amount: 1999, Left: 5}}
	w.send(refundWithID("BIG"))
	if failed := w.deliverVisible(); len(failed) > 0 || len(w.notes) > 0 {
		t.Errorf("got notes %q and failures %q, want none", w.notes, failed)
	}
	got := map[string]string{}
	for name, a := range w.messages(w.dead)[0].Attributes {
		got[name] = a.Text
	}
	want := map[string]string{
		sqs.AttrReason: "refund_exceeds", sqs.AttrOrderID: "ORD12345", sqs.AttrFirstSent: "2100-01-02T03:04:05Z",
		sqs.AttrDetail: "refund of 1999 exceeds the 5 that is left of the charge", sqs.AttrFirstMessageID: got[sqs.AttrFirstMessageID],
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("attributes (-got +want):\n%s", diff)
	}
	if line := w.line("refund_id", "BIG"); line["level"] != "ERROR" || line["reason"] != "refund_exceeds" {
		t.Errorf("log line: got %v, want an ERROR for refund_exceeds", line)
	}
}

func TestARefundThatPanicsIsRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Refund = func(context.Context, refund.Request, order.Lease) order.Result { panic(canary) }
	ids := w.send(goodRefund, good)
	if diff := cmp.Diff(w.deliverVisible(), ids[:1]); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if line := w.line("refund_id", "R-1"); line["reason"] != "panic" || strings.Contains(w.log.String(), canary) {
		t.Errorf("log: got %v, want reason panic without the panic's value", line)
	}
}

// The order may be paid days later. The message is parked before the queue deletes it,
// and a redrive after the payment makes the refund.
func TestARefundWaitsForItsOrdersPaymentUntilTheLastDay(t *testing.T) {
	t.Parallel()
	p := sqs.DefaultPolicy()
	for _, tt := range []struct {
		count int
		age   time.Duration
		want  order.Verdict
	}{
		{1, 0, order.Redeliver},
		{20, time.Hour, order.Redeliver},
		{900, p.Retention - day - 1, order.Redeliver},
		{2, p.Retention - day, order.Park},
	} {
		d := sqs.Delivery{Count: tt.count, SentAt: start().Add(-tt.age)}
		if got := sqs.Decide(notCharged(), d, start(), 0, p).Verdict; got != tt.want {
			t.Errorf("delivery %d after %v: got %s, want %s", tt.count, tt.age, got, tt.want)
		}
	}
	w := newWorld(t)
	w.script["R-1"] = notCharged()
	w.send(goodRefund)
	w.advance(p.Retention - day)
	w.deliverVisible()
	if got := w.messages(w.dead); len(got) != 1 || got[0].Attributes[sqs.AttrReason].Text != "not_charged" {
		t.Fatalf("dead letters: got %+v, want one for not_charged", got)
	}
	w.redrive()
	delete(w.script, "R-1")
	if failed := w.deliverVisible(); len(failed) > 0 || w.counted("Refunds settled") != 1 {
		t.Errorf("after the payment: got failures %q, metrics %v, want the refund made", failed, w.meter)
	}
}

func TestNoReasonOfARefundIsTakenByAnotherPackage(t *testing.T) {
	t.Parallel()
	for _, reason := range refund.Reasons() {
		if slices.Contains(append(order.Reasons(), sqs.Reasons()...), reason) {
			t.Errorf("%s has two meanings", reason)
		}
	}
}
