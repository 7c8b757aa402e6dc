package stripetest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest"
)

const disputes = "/v1/disputes"

// pay creates and confirms an intent with a card that succeeds.
func (w *world) pay() (intent string) {
	w.t.Helper()
	intent = w.create("pm_card_visa")
	w.confirm(intent, "")
	return intent
}

// dispute disputes the charge of an intent.
func (w *world) dispute(intent string) (id string) {
	w.t.Helper()
	d, err := w.OpenDispute(w.now, intent)
	must(w.t, err)
	return d.ID
}

// list returns the ids of a page of disputes, and whether there are more.
func (w *world) list(form string) (ids []string, more bool) {
	w.t.Helper()
	var page struct {
		More bool `json:"has_more"`
		Data []struct{ ID string }
	}
	must(w.t, json.Unmarshal(w.Do(w.now, request("GET", disputes, "", form)).Body(), &page))
	for _, d := range page.Data {
		ids = append(ids, d.ID)
	}
	return ids, page.More
}

func TestDisputesAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	first, second := w.pay(), w.pay()
	for _, intent := range []string{first, second, first, first} {
		w.dispute(intent)
	}
	for form, want := range map[string]struct {
		ids  []string
		more bool
	}{
		"":                                      {[]string{"du_000004", "du_000003", "du_000002", "du_000001"}, false},
		"payment_intent=" + first:               {[]string{"du_000004", "du_000003", "du_000001"}, false},
		"payment_intent=" + second:              {[]string{"du_000002"}, false},
		"limit=2&payment_intent=" + first:       {[]string{"du_000004", "du_000003"}, true},
		"starting_after=du_000003&limit=2":      {[]string{"du_000002", "du_000001"}, false},
		"starting_after=du_000001":              {nil, false},
		"payment_intent=" + w.create("pm_card"): {nil, false},
	} {
		if ids, more := w.list(form); more != want.more || !cmp.Equal(ids, want.ids) {
			t.Errorf("%s: got %v, more %t, want %v, %t", form, ids, more, want.ids, want.more)
		}
	}
}

func TestTheDisputesOfAnotherAccountAreNotListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	w.dispute(w.pay())
	r := request("GET", disputes, "", "")
	r.APIKey = "sk_test_other"
	if got := w.Do(w.now, r).Disputes.Items; len(got) > 0 {
		t.Errorf("got %d disputes, want none", len(got))
	}
}

func TestAListOfDisputesIsRefused(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		rules           stripetest.Rules
		key, form, want string
	}{
		"for an unknown intent":             {form: "payment_intent=pi_000009", want: resourceMissing},
		"for an intent of another account":  {key: "sk_test_other", form: "payment_intent=pi_000001", want: resourceMissing},
		"after an unknown dispute":          {form: "starting_after=du_000009", want: resourceMissing},
		"after a dispute of another":        {key: "sk_test_other", form: "starting_after=du_000001", want: resourceMissing},
		"with a limit of 0":                 {form: "limit=0", want: "400 invalid_request_error parameter_invalid_integer"},
		"with an unknown parameter":         {form: "intent=pi_000001", want: parameterUnknown},
		"to a restricted key without right": {stripetest.Rules{NoDisputes: true}, "rk_test_pretend", "", "403 invalid_request_error"},
		"and not to one with it":            {key: "rk_test_pretend", want: "200"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.rules)
			w.dispute(w.pay())
			r := request("GET", disputes, "", tt.form)
			if tt.key != "" {
				r.APIKey = tt.key
			}
			if got := summary(w.Do(w.now, r)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOnlyAChargeIsDisputedAndOnlyAnOpenDisputeIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	_, err := w.OpenDispute(w.now, "pi_000001")
	if !errors.Is(err, stripetest.ErrNoIntent) {
		t.Errorf("an unknown intent: got %v, want %v", err, stripetest.ErrNoIntent)
	}
	_, err = w.OpenDispute(w.now, w.create("pm_card_visa"))
	if _, unpaid := errors.AsType[*stripetest.StateError](err); !unpaid {
		t.Errorf("an unpaid intent: got %v, want a StateError", err)
	}
	id := w.dispute(w.pay())
	must(t, w.CloseDispute(id, true))
	for _, closed := range []string{id, "du_000002"} {
		if err := w.CloseDispute(closed, false); !errors.Is(err, stripetest.ErrNoDispute) {
			t.Errorf("close of %s: got %v, want %v", closed, err, stripetest.ErrNoDispute)
		}
	}
	if got := w.Disputes()[0].Status; got != stripetest.DisputeWon {
		t.Errorf("got status %s, want %s", got, stripetest.DisputeWon)
	}
}

// An event holds the dispute as it was then, and the charge says that it is disputed.
func TestADisputeIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	intent := w.pay()
	charge := func() any { return latestCharge(w, intent, "expand[]=latest_charge").(map[string]any)["disputed"] }
	before := charge()
	id := w.dispute(intent)
	must(t, w.CloseDispute(id, false))
	if before != false || charge() != true {
		t.Errorf("disputed: got %v, then %v, want false, then true", before, charge())
	}
	events := w.Events()[1:]
	statuses := []stripe.DisputeStatus{stripe.DisputeStatusNeedsResponse, stripe.DisputeStatusLost}
	for i, want := range []stripe.EventType{stripe.EventTypeChargeDisputeCreated, stripe.EventTypeChargeDisputeClosed} {
		var event stripe.Event
		var dispute stripe.Dispute
		must(t, json.Unmarshal(events[i].Body(w.now), &event))
		must(t, json.Unmarshal(event.Data.Raw, &dispute))
		got := []any{event.Type, dispute.ID, dispute.PaymentIntent.ID, dispute.Charge.ID, dispute.Status, dispute.Created}
		if diff := cmp.Diff(got, []any{want, id, intent, "ch_000001", statuses[i], w.now.Unix()}); diff != "" {
			t.Errorf("event %d (-got +want):\n%s", i, diff)
		}
	}
}
