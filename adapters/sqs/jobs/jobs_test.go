package jobs_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/jobs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// canary must appear in no error. It has a blank, so that no field accepts it.
const canary = "4242 4242 canary"

func wrapped(body string) []string {
	event := bodytest.FromEventBridge(body)
	return []string{body, event, bodytest.FromSNS(body), bodytest.FromSNS(event)}
}

// typed returns the good order with a field "type".
func typed(value string) string {
	return bodytest.OrderWith(`{"orderId"`, `{"type":`+value+`,"orderId"`)
}

func TestDecodeReadsOrdersAndRefundsInEveryWrapper(t *testing.T) {
	t.Parallel()
	decoder := jobs.NewDecoder()
	for kind, bodies := range map[string][]string{
		"order": {bodytest.Order, typed(`"order"`)}, "refund": {bodytest.Refund, bodytest.RefundWith("refund\"", `\u0072efund"`)},
	} {
		for _, plain := range bodies {
			for _, body := range wrapped(plain) {
				j, err := decoder.Decode(body)
				if err != nil || j.OrderID() != "ORD12345" || j.IsRefund() != (kind == "refund") || (j.Order.ID() == "") != j.IsRefund() {
					t.Errorf("%s: got %+v, %v, want the %s", body, j, err, kind)
				}
			}
		}
	}
	if (jobs.Job{}).OrderID() != "" {
		t.Error("the zero job has an order")
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	with, decoder := bodytest.RefundWith, jobs.NewDecoder()
	const (
		wantType   = `type: want "order"`
		wantRefund = `type: want "refund"; send orders to the order queue`
	)
	for name, bad := range map[string][2]string{
		"another type":                  {with(`"refund"`, `"reversal"`), wantType},
		"a type in another case":        {with(`"refund"`, `"Refund"`), wantType},
		"an order of another type":      {typed(`"sale"`), wantType},
		"null for the type of an order": {typed(`null`), `type: want a string`},
		"an empty type":                 {typed(`""`), `type: want "order"`},
		"a list for the type":           {with(`"refund"`, `["refund"]`), `type: want a string`},
		"a refund without a type":       {with(`"type":"refund",`, ""), `unknown field "refundId"`},
		"a refund that says order":      {with(`"refund"`, `"order"`), `unknown field "refundId"`},
		"an order that says refund":     {typed(`"refund"`), `unknown field "customerId"`},
		"the type in another case":      {with(`"type"`, `"Type"`), `unknown field "Type": want "type"`},
		"two types":                     {with(`"type"`, `"type":"order","type"`), `duplicate field "type"`},
		"a refund's field beside event": {strings.Replace(bodytest.FromEventBridge(bodytest.Refund), `{`, `{"refundId":"R-2",`, 1), `unknown field "refundId"`},
	} {
		if got, err := decoder.Decode(bad[0]); err == nil || err.Error() != "message body: "+bad[1] || got.OrderID() != "" {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, bad[1])
		}
	}
}

// FuzzDecode puts the canary into values, of the right type and of wrong ones, and into
// names of fields.
func FuzzDecode(f *testing.F) {
	for _, body := range append(wrapped(bodytest.Order), wrapped(bodytest.Refund)...) {
		f.Add(body)
	}
	decoder := jobs.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := decoder.Decode(body)
		if err != nil {
			isDecodeError(t, err)
		} else if again, err := decoder.Decode(canonical(t, body)); err != nil ||
			!cmp.Equal(again, got, cmp.AllowUnexported(order.Order{}, refund.Request{})) {
			t.Errorf("in canonical JSON it is %+v (%v), want %+v", again, err, got)
		}
		for _, planted := range plant(body) {
			_, err := decoder.Decode(planted)
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

func isDecodeError(t *testing.T, err error) {
	t.Helper()
	var body *strictjson.Error
	var invalid *order.InvalidError
	if !errors.As(err, &body) && !errors.As(err, &invalid) {
		t.Errorf("got %T: %v, want *strictjson.Error or *order.InvalidError", err, err)
	}
}

// canonical encodes a body again, with sorted keys, no blanks and other escapes.
func canonical(t *testing.T, body string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("an accepted body is not JSON: %v", err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func plant(body string) (all []string) {
	var fields map[string]any
	if strings.Contains(body, "canary") || len(body) > 1<<15 || json.Unmarshal([]byte(body), &fields) != nil || fields == nil {
		return nil
	}
	names := []string{"type", "orderId", "customerId", "currency", "lines", "payment", "refundId", "amount", "reason", "detail"}
	if fields["detail"] == nil && fields["Message"] == nil { // wrappers may have any field
		names = append(names, canary)
	}
	for _, name := range names {
		for _, value := range []any{
			canary,
			[]string{canary},
			map[string]any{canary: 1},
			map[string]any{"customer": canary, "method": canary},
			[]any{map[string]any{"sku": canary, "quantity": 1, "unitAmount": 1}},
			[]any{map[string]any{canary: 1}},
		} {
			planted := maps.Clone(fields)
			planted[name] = value
			if text, err := json.Marshal(planted); err == nil {
				all = append(all, string(text))
			}
		}
	}
	return all
}
