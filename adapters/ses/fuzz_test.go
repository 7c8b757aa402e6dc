package ses_test

import (
	"testing"

	"orderonce/adapters/ses"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

func FuzzDecodeEvent(f *testing.F) {
	f.Add(`{"source":"aws.ses","detail":{"eventType":"Send","mail":{"messageId":"1","tags":{"orderonce-scope":["test"],` +
		`"orderonce-order":["QS4x"],"orderonce-receipt":["cGFpZA"],"orderonce-attempt":["1"]}}}}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, body string) {
		e, wanted, err := ses.DecodeEvent(body, scope)
		if !wanted || err != nil {
			return
		}
		if _, err := receipt.ParseKey(string(e.Key)); err != nil || !order.ValidID(string(e.OrderID)) || e.Report.Message == "" {
			t.Errorf("got %+v of %q, want valid ids", e, body)
		}
	})
}
