package refund_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// readDiagram returns the transitions of the refunds' state diagram in docs/design.md.
// The first status follows "".
func readDiagram(t *testing.T) map[refund.Status][]refund.Status {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## Refunds\n")
	_, rest, drawn := strings.Cut(rest, "stateDiagram-v2\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !drawn || !closed {
		t.Fatal("docs/design.md has no state diagram of refunds")
	}
	arrows := map[refund.Status][]refund.Status{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) --> (\w+)`).FindAllStringSubmatch(block, -1) {
		from := refund.Status(strings.Trim(m[1], "[*]"))
		arrows[from] = append(arrows[from], refund.Status(m[2]))
	}
	return arrows
}

func TestTransitionsMatchTheDiagram(t *testing.T) {
	arrows := readDiagram(t)
	if got, want := arrows[""], []refund.Status{refund.Open}; !slices.Equal(got, want) {
		t.Errorf("first status: got %v, want %v", got, want)
	}
	for _, from := range refund.Statuses() {
		for _, to := range refund.Statuses() {
			err := from.Transition(to)
			if want := slices.Contains(arrows[from], to); (err == nil) != want {
				t.Errorf("%s -> %s: got error %v, in the diagram: %t", from, to, err, want)
			}
			e, is := errors.AsType[*refund.TransitionError](err)
			if err != nil && (!is || e.From != from || e.To != to || !strings.Contains(e.Error(), string(from))) {
				t.Errorf("%s -> %s: got %v, want a TransitionError with both", from, to, err)
			}
		}
	}
}

func TestParseStatus(t *testing.T) {
	for _, s := range refund.Statuses() {
		if got, err := refund.ParseStatus(string(s)); got != s || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, s)
		}
	}
	for _, s := range []string{"", "paid", "OPEN"} {
		if _, err := refund.ParseStatus(s); !errors.Is(err, order.ErrUnknownVersion) {
			t.Errorf("%q: got %v, want ErrUnknownVersion", s, err)
		}
	}
}

func TestOnlyARefundThatMayChangeByItselfIsDue(t *testing.T) {
	for s, want := range map[refund.Status]time.Duration{
		refund.Open: 30 * time.Minute, refund.Pending: 24 * time.Hour, refund.Succeeded: 0, refund.Failed: 0,
		refund.Refused: 0, refund.Unknown: 0,
	} {
		if after, waits := s.RecheckAfter(); after != want || waits != (want > 0) {
			t.Errorf("%s: got %v, %t, want %v", s, after, waits, want)
		}
	}
}

func TestNew(t *testing.T) {
	valid := refund.Draft{OrderID: "ORD-1", RefundID: "R1", Amount: 1, Reason: "duplicate"}
	r, err := refund.New(valid)
	if err != nil || r.OrderID() != "ORD-1" || r.ID() != "R1" || r.Amount() != 1 || r.Reason() != refund.Duplicate {
		t.Errorf("got %+v, %v, want the draft", r, err)
	}
	other := valid
	other.Amount = 2
	if again, _ := refund.New(valid); again.Fingerprint() != r.Fingerprint() {
		t.Errorf("got fingerprint %s, want %s", again.Fingerprint(), r.Fingerprint())
	}
	if another, _ := refund.New(other); another.Fingerprint() == r.Fingerprint() {
		t.Errorf("another amount: got the same fingerprint %s", r.Fingerprint())
	}
	_, err = refund.New(refund.Draft{OrderID: "a b", RefundID: "", Amount: 0, Reason: "sorry"})
	const want = `invalid refund: orderId [withheld: length 3, with ' ']: want 1 to 64 letters, digits, '.', '_' or '-', ` +
		`the first a letter or a digit; refundId "": want 1 to 64 letters, digits, '.', '_' or '-', ` +
		`the first a letter or a digit; amount 0: want 1 to 999999999999; reason "sorry": ` +
		`want "duplicate", "fraudulent" or "requested_by_customer"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if other.Amount = refund.MaxAmount; invalid(other) {
		t.Errorf("amount %d: got an error, want none", other.Amount)
	}
	in := refund.Draft{OrderID: "ORD-1", RefundID: "R1", Amount: 1, Currency: "usd", Reason: "duplicate"}
	if named, err := refund.New(in); err != nil || named.Currency() != "usd" || named.Fingerprint() != r.Fingerprint() {
		t.Errorf("with a currency: got %+v, %v, want the same fingerprint", named, err)
	}
	if in.Currency = "USD"; !invalid(in) {
		t.Error("currency USD: got no error, want one")
	}
	for _, amount := range []int64{-1, refund.MaxAmount + 1} {
		valid.Amount = amount
		if !invalid(valid) {
			t.Errorf("amount %d: got no error, want one", amount)
		}
	}
}

func invalid(d refund.Draft) bool {
	_, err := refund.New(d)
	return err != nil
}

func TestKey(t *testing.T) {
	if got, want := refund.Key("prod", "ORD-1", "R1", 2), "prod/order/ORD-1/refund/R1/2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
