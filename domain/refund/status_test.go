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

// An account counts and reserves by the status of each refund, whatever its place.
func TestAnAccountOfTwoRefunds(t *testing.T) {
	counts := map[refund.Status]bool{refund.Pending: true, refund.Succeeded: true}
	reserves := map[refund.Status]bool{refund.Pending: true, refund.Succeeded: true, refund.Open: true, refund.Unknown: true}
	waits := map[refund.Status]time.Duration{refund.Open: 30 * time.Minute, refund.Pending: day}
	for _, one := range refund.Statuses() {
		for _, two := range refund.Statuses() {
			a := refund.Account{Charged: usd(total), Items: []refund.Item{
				{ID: "R1", Amount: 1, Status: one, UpdatedAt: noon()}, {ID: "R2", Amount: 10, Status: two, UpdatedAt: noon().Add(day)},
			}}
			var back, reserved int64
			var due time.Time
			for _, i := range a.Items {
				if counts[i.Status] {
					back += i.Amount
				}
				if reserves[i.Status] {
					reserved += i.Amount
				}
				if at := i.UpdatedAt.Add(waits[i.Status]); waits[i.Status] > 0 && (due.IsZero() || at.Before(due)) {
					due = at
				}
			}
			if a.Refunded() != back || a.Left() != total-reserved || !a.DueAt().Equal(due) {
				t.Errorf("%s, %s: got %d back, %d left, due %v, want %d, %d, %v",
					one, two, a.Refunded(), a.Left(), a.DueAt(), back, total-reserved, due)
			}
		}
	}
}

func TestAbandoned(t *testing.T) {
	now := noon().Add(day)
	for claim, tt := range map[string]struct {
		item refund.Item
		want bool
	}{
		"open, without an attempt for a day":         {refund.Item{Status: refund.Open, UpdatedAt: noon()}, true},
		"open, an attempt less than a day ago":       {refund.Item{Status: refund.Open, UpdatedAt: noon().Add(1)}, false},
		"open, under a lease":                        {refund.Item{Status: refund.Open, UpdatedAt: noon(), Until: now.Add(1)}, false},
		"open, and its lease ended":                  {refund.Item{Status: refund.Open, UpdatedAt: noon(), Until: now.Add(-1)}, true},
		"pending, without an attempt for a day":      {refund.Item{Status: refund.Pending, UpdatedAt: noon()}, false},
		"unknown, and a person has not looked at it": {refund.Item{Status: refund.Unknown, UpdatedAt: noon()}, false},
	} {
		if got := tt.item.Abandoned(now); got != tt.want {
			t.Errorf("%s: got %t, want %t", claim, got, tt.want)
		}
	}
}

// A person ends a refund that the provider has an id for, and the item keeps the id.
func TestAnOutcomeWithoutAnIDKeepsTheOneThatIsKnown(t *testing.T) {
	a := refund.Account{Items: []refund.Item{{ID: "R1", Status: refund.Unknown, Refund: "re_1"}}}
	for given, want := range map[refund.ProviderID]refund.ProviderID{"": "re_1", "re_2": "re_2"} {
		after, err := refund.Settled(a, "R1", refund.Outcome{Status: refund.Failed, Refund: given}, noon())
		if i, _ := after.Item("R1"); err != nil || i.Refund != want {
			t.Errorf("%q: got %+v, %v, want %s", given, i, err, want)
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
