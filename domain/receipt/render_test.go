package receipt_test

import (
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

func render(t *testing.T, r receipt.Request, locales ...string) (receipt.Mail, error) {
	t.Helper()
	n, err := receipt.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	return n.Render(r, receipt.Payer{Locales: locales})
}

func TestRender(t *testing.T) {
	refunded := paid()
	refunded.Key, refunded.Total = receipt.OfRefund("R-1"), order.Money{Amount: 500, Currency: "jpy"}
	elsewhere := paid()
	elsewhere.At = elsewhere.At.In(time.FixedZone("", 14*60*60))
	const english = "Thank you. We have received 39.98 USD for your order ORD-1 on 2026-05-01.\n"
	const german = "Vielen Dank. Wir haben am 2026-05-01 für Ihre Bestellung ORD-1 39.98 USD erhalten.\n"
	for claim, tt := range map[string]struct {
		request       receipt.Request
		locales       []string
		subject, text string
	}{
		"a payment":                             {paid(), []string{"en-GB"}, "Receipt for order ORD-1", english},
		"a time in another zone":                {elsewhere, nil, "Receipt for order ORD-1", english},
		"a language without templates":          {paid(), []string{"fr"}, "Receipt for order ORD-1", english},
		"the first language that has templates": {paid(), []string{"fr", "DE-AT", "en"}, "Quittung zur Bestellung ORD-1", german},
		"a refund": {
			refunded, nil, "Refund for order ORD-1",
			"We have refunded 500 JPY for your order ORD-1 on 2026-05-01.\nRefund: R-1\n\nYour bank may need a few days to show it.\n",
		},
	} {
		got, err := render(t, tt.request, tt.locales...)
		if err != nil || got.Subject != tt.subject || got.Text != tt.text {
			t.Errorf("%s: got %q and %q, %v, want %q and %q", claim, got.Subject, got.Text, err, tt.subject, tt.text)
		}
		for _, part := range []string{string(tt.request.OrderID), tt.request.Key.Refund(), tt.request.Total.String()} {
			if !strings.Contains(got.HTML, part) {
				t.Errorf("%s: the HTML lacks %q:\n%s", claim, part, got.HTML)
			}
		}
	}
}

// FromEvent accepts no such id; this is the second line of defense.
func TestNoContentAddsAHeaderOrAnElement(t *testing.T) {
	r := paid()
	r.OrderID = "x\rBcc: a@b.invalid"
	if m, err := render(t, r); err == nil {
		t.Errorf("got the subject %q, want an error", m.Subject)
	}
	r.OrderID = "<script>"
	if m, err := render(t, r); err != nil || strings.Contains(m.HTML, "<script>") {
		t.Errorf("got %v and the HTML\n%s\nwant it escaped", err, m.HTML)
	}
}
