package world

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
)

// flaw is what is wrong with an intent that this deployment did not make, or with a
// response about one that it did make: one field, because verification must look at every
// field.
type flaw string

const (
	otherOrder  flaw = "of another order"
	otherAmount flaw = "another amount"
	otherMoney  flaw = "another currency"
	otherScope  flaw = "of another deployment"
	noMetadata  flaw = "without metadata"
)

// andPaid is the suffix of the flaw of an intent that is paid.
const andPaid = ", and paid"

func flaws() []flaw {
	all := []flaw{otherOrder, otherAmount, otherMoney, otherScope, noMetadata}
	for _, f := range all[1:] {
		all = append(all, f+andPaid)
	}
	return all
}

func (f flaw) apply(i *stripetest.Intent) {
	i.Metadata = maps.Clone(i.Metadata)
	switch flaw(strings.TrimSuffix(string(f), andPaid)) {
	case otherOrder:
		i.Metadata["orderId"] += "-other"
	case otherAmount:
		i.Amount += 100
	case otherMoney:
		i.Currency = otherCurrency(i.Currency)
	case otherScope:
		i.Metadata["scope"] = string(oracle.Neighbor)
	case noMetadata:
		i.Metadata = nil
	}
}

// misdescribed returns an intent as a response about something else shows it. The case
// decides what is wrong with it.
func (w *World) misdescribed(i *stripetest.Intent) *stripetest.Intent {
	wrong, how := *i, flaws()[w.setup.Variety%5] // not paid
	if !w.oracle.Ours(i.ID) {
		how = otherAmount // the others could turn it into this order's intent
	}
	how.apply(&wrong)
	return &wrong
}

// wrongIntent returns an intent that is not the order's: one of another order in this
// world, or one that a person or another deployment makes now.
func (w *World) wrongIntent(claimed *oracle.Sent, how flaw) *stripetest.Intent {
	if how == otherOrder {
		return w.intentOfAnother(claimed.ID)
	}
	like := intentFor(claimed, scope)
	how.apply(&like)
	return w.createForeign(like, strings.HasSuffix(string(how), andPaid), "", "")
}

func intentFor(m *oracle.Sent, s order.Scope) stripetest.Intent {
	return stripetest.Intent{
		Amount: m.Amount, Currency: m.Currency, Customer: m.Payer, PaymentMethod: Visa,
		Metadata: map[string]string{"orderId": string(m.ID), "scope": string(s)},
	}
}

func (w *World) intentOfAnother(id order.ID) *stripetest.Intent {
	for _, i := range w.services.stripe.Intents() {
		if i.OrderID() != string(id) && w.oracle.Ours(i.ID) {
			return i
		}
	}
	return nil
}

// meet lets the neighbor charge an order with the same id and content, or only prepare
// it. It runs the same release, so its keys differ from ours only in the scope.
func (w *World) meet(o option) {
	pays := o.n == 1
	w.incidents.met = true
	m := &w.sent[0]
	made := w.createForeign(intentFor(m, oracle.Neighbor), pays,
		order.PrepareKey(oracle.Neighbor, m.ID).String(), order.ConfirmKey(oracle.Neighbor, m.ID, 1).String())
	id, what := "nothing", "prepares "
	if made != nil { // else its key was used by another
		id = made.ID
	}
	if pays {
		what = "charges "
	}
	w.happens("neighbor", what+id+" for its own order "+string(m.ID))
}

// createForeign creates an intent that is not this deployment's, and may confirm it.
func (w *World) createForeign(like stripetest.Intent, pays bool, create, confirm string) *stripetest.Intent {
	form := url.Values{
		"amount": {strconv.FormatInt(like.Amount, 10)}, "currency": {like.Currency}, "customer": {like.Customer},
		"payment_method": {like.PaymentMethod},
	}
	for _, name := range slices.Sorted(maps.Keys(like.Metadata)) {
		form.Set("metadata["+name+"]", like.Metadata[name])
	}
	post := func(path, key string, form url.Values) *stripetest.Intent {
		return w.services.stripe.Do(w.Now, stripetest.Request{
			Method: http.MethodPost, Path: path, APIKey: apiKey, Key: key, Form: form,
		}).Intent
	}
	made := post(intentsPath, create, form)
	if made == nil {
		return nil
	}
	w.oracle.Foreign(made.ID)
	if pays {
		post(intentsPath+"/"+made.ID+"/confirm", confirm, url.Values{"off_session": {"true"}})
	}
	return made
}

// sameContent reports whether two fingerprints differ at most in their version.
func sameContent(a string, b order.Fingerprint) bool {
	_, hashA, _ := strings.Cut(a, ":")
	_, hashB, _ := strings.Cut(string(b), ":")
	return hashA == hashB
}
