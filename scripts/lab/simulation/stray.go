package simulation

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// stray is what is wrong with an intent that this deployment did not make, or with an
// answer about one that it did make.
type stray string

// What can be wrong, each alone: verification must look at every field.
const (
	otherOrder    stray = "of another order"
	otherAmount   stray = "another amount"
	otherCurrency stray = "another currency"
	otherScope    stray = "of another deployment"
	noMetadata    stray = "without metadata"

	paidAmount   stray = "another amount, and paid"
	paidCurrency stray = "another currency, and paid"
	paidScope    stray = "of another deployment, and paid"
	paidNoData   stray = "without metadata, and paid"
)

// strays lists what a person can write into a row.
func strays() []stray {
	return []stray{
		otherOrder, otherAmount, otherCurrency, otherScope, noMetadata,
		paidAmount, paidCurrency, paidScope, paidNoData,
	}
}

// spoils makes an intent that one for an order is not.
func (s stray) spoils(i *stripetest.Intent) {
	i.Metadata = maps.Clone(i.Metadata)
	switch s {
	case otherOrder:
		i.Metadata["orderId"] += "-other"
	case otherAmount, paidAmount:
		i.Amount += 100
	case otherCurrency, paidCurrency:
		i.Currency = sameNumber(i.Currency)
	case otherScope, paidScope:
		i.Metadata["scope"] = string(neighbor)
	case noMetadata, paidNoData:
		i.Metadata = nil
	}
}

func (s stray) paid() bool {
	return s == paidAmount || s == paidCurrency || s == paidScope || s == paidNoData
}

// wrong returns an intent as an answer about something else describes it. The world
// decides what is wrong with it.
func (w *World) wrong(i *stripetest.Intent) *stripetest.Intent {
	answers := []stray{otherOrder, otherAmount, otherCurrency, otherScope, noMetadata}
	spoiled, kind := *i, answers[w.Variety%len(answers)]
	if slices.Contains(w.strays, i.ID) {
		kind = otherAmount // the other ways could turn it into this order's
	}
	kind.spoils(&spoiled)
	return &spoiled
}

// straying returns an intent that is not this order's: one of another order in this
// world, or one that a person or another deployment makes now.
func (w *World) straying(x *watched, kind stray) *stripetest.Intent {
	if kind == otherOrder {
		return w.foreign(x.id)
	}
	like := stripetest.Intent{
		Amount: x.claimed.amount(), Currency: x.claimed.Currency, Customer: x.claimed.Payer, PaymentMethod: visa,
		Metadata: map[string]string{"orderId": string(x.id), "scope": string(scope)},
	}
	kind.spoils(&like)
	return w.makes(like, kind.paid(), "", "")
}

// foreign returns an intent that this deployment made for another order, nil if there is
// none.
func (w *World) foreign(id order.ID) *stripetest.Intent {
	for _, i := range w.stripe.Intents() {
		if i.OrderID() != string(id) && w.ours(i) {
			return i
		}
	}
	return nil
}

// meet lets the neighbor charge an order with the same id and content, or only prepare
// it. It runs the same release, so its keys differ from ours in the scope alone.
func (w *World) meet(pays bool) {
	w.met = true
	m := &w.Messages[0]
	like := stripetest.Intent{
		Amount: m.amount(), Currency: m.Currency, Customer: m.Payer, PaymentMethod: visa,
		Metadata: map[string]string{"orderId": string(m.ID), "scope": string(neighbor)},
	}
	made := w.makes(
		like,
		pays,
		order.PrepareKey(neighbor, m.ID).String(),
		order.ConfirmKey(neighbor, m.ID, 1).String(),
	)
	what := "prepares "
	if pays {
		what = "charges "
	}
	if made == nil { // its key was used by somebody else
		made = &stripetest.Intent{ID: "nothing"}
	}
	w.happens("neighbor", what+made.ID+" for its own order "+string(m.ID))
}

// makes creates an intent that is not this deployment's, and may confirm it.
func (w *World) makes(like stripetest.Intent, pay bool, create, confirm string) *stripetest.Intent {
	form := url.Values{
		"amount": {strconv.FormatInt(like.Amount, 10)}, "currency": {like.Currency}, "customer": {like.Customer},
		"payment_method": {like.PaymentMethod},
	}
	for _, name := range slices.Sorted(maps.Keys(like.Metadata)) {
		form.Set("metadata["+name+"]", like.Metadata[name])
	}
	made := w.stripe.Do(
		w.now,
		stripetest.Request{Method: http.MethodPost, Path: root, APIKey: apiKey, Key: create, Form: form},
	).Intent
	if made == nil {
		return nil
	}
	if !slices.Contains(w.strays, made.ID) {
		w.strays = append(w.strays, made.ID)
	}
	if pay {
		path := root + "/" + made.ID + "/confirm"
		form := url.Values{"off_session": {"true"}}
		w.stripe.Do(
			w.now,
			stripetest.Request{Method: http.MethodPost, Path: path, APIKey: apiKey, Key: confirm, Form: form},
		)
	}
	return made
}

// ours reports whether this deployment made an intent.
func (w *World) ours(i *stripetest.Intent) bool { return !slices.Contains(w.strays, i.ID) }
