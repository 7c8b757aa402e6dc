package refund_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func TestTransitionsMatchTheDiagram(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "\n## Refunds\n")
	_, block, _ = strings.Cut(block, "stateDiagram-v2\n")
	block, _, _ = strings.Cut(block, "```")
	documented := regexp.MustCompile(`\S+ --> \w+`).FindAllString(block, -1)
	want := []string{"[*] --> open"}
	for _, from := range refund.Statuses() {
		for _, to := range refund.Statuses() {
			if from.Transition(to) == nil {
				want = append(want, fmt.Sprintf("%s --> %s", from, to))
			}
		}
	}
	slices.Sort(documented)
	slices.Sort(want)
	if diff := cmp.Diff(documented, want); diff != "" {
		t.Errorf("transitions (-documented +want):\n%s", diff)
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
	waits := map[refund.Status]time.Duration{refund.Open: 30 * time.Minute, refund.Pending: day, refund.Unknown: day}
	changed := noon().Add(3 * day / 2)
	for _, one := range refund.Statuses() {
		for _, two := range refund.Statuses() {
			a := refund.Account{Charged: usd(total), UpdatedAt: changed, Items: []refund.Item{
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
				at := i.UpdatedAt.Add(waits[i.Status])
				if at.Before(changed) { // a run has looked at it since, so it is not overdue
					at = changed.Add(waits[i.Status])
				}
				if waits[i.Status] > 0 && (due.IsZero() || at.Before(due)) {
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
	for claim, tt := range map[string]struct {
		edit  func(*refund.Draft)
		valid bool
		same  bool // content
	}{
		"the same":            {func(*refund.Draft) {}, true, true},
		"another amount":      {func(d *refund.Draft) { d.Amount = 2 }, true, false},
		"another reason":      {func(d *refund.Draft) { d.Reason = "fraudulent" }, true, false},
		"the largest":         {func(d *refund.Draft) { d.Amount = 999_999_999_999 }, true, false},
		"with a currency":     {func(d *refund.Draft) { d.Currency = "usd" }, true, true},
		"an amount too much":  {func(d *refund.Draft) { d.Amount = 1_000_000_000_000 }, false, false},
		"a negative amount":   {func(d *refund.Draft) { d.Amount = -1 }, false, false},
		"an invalid currency": {func(d *refund.Draft) { d.Currency = "USD" }, false, false},
	} {
		d := valid
		tt.edit(&d)
		got, err := refund.New(d)
		same := got.Fingerprint() == r.Fingerprint()
		if (err == nil) != tt.valid || tt.valid && (same != tt.same || string(got.Currency()) != d.Currency) {
			t.Errorf("%s: got %+v, %v, want valid %t, the same content %t", claim, got, err, tt.valid, tt.same)
		}
	}
	_, err = refund.New(refund.Draft{OrderID: "a b", RefundID: "", Amount: 0, Reason: "sorry"})
	const want = `invalid refund: orderId [withheld: length 3, with ' ']: want 1 to 64 letters, digits, '.', '_' or '-', ` +
		`the first a letter or a digit; refundId "": want 1 to 64 letters, digits, '.', '_' or '-', ` +
		`the first a letter or a digit; amount 0: want 1 to 999999999999; reason "sorry": ` +
		`want "duplicate", "fraudulent" or "requested_by_customer"`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestKey(t *testing.T) {
	if got, want := refund.Key("prod", "ORD-1", "R1", 2), "prod/order/ORD-1/refund/R1/2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
