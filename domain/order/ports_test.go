package order_test

import (
	"errors"
	"testing"

	"orderonce/domain/order"
)

func TestErrorsNameTheirDetails(t *testing.T) {
	cause := errors.New("no such card")
	for want, err := range map[string]error{
		"order already settled: paid": &order.SettledError{Record: order.Record{Status: order.Paid}},
		"order in progress: leased to another attempt until 2026-01-02T12:00:00Z": &order.InProgressError{Until: noon()},
		"invalid transition: paid -> open":                                        &order.TransitionError{From: order.Paid, To: order.Open},
		`intent pi_1: total is "1.00 USD", want "2.00 USD"`: &order.MismatchError{
			Intent: "pi_1", Field: "total", Got: "1.00 USD", Want: "2.00 USD",
		},
		"refused: no such card":                 &order.PaymentError{Kind: order.KindRefused, Err: cause},
		"refused: no such card (request req_1)": &order.PaymentError{Kind: order.KindRefused, RequestID: "req_1", Err: cause},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !errors.Is(&order.PaymentError{Kind: order.KindUnknown, Err: cause}, cause) {
		t.Error("got a PaymentError that does not wrap its cause, want one that does")
	}
}
