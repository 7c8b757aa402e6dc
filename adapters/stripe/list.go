package stripe

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"orderonce/domain/order"
)

// Listed is a PaymentIntent with its latest charge. State is "" if this application never
// causes the intent's status, such as that of a manual capture.
type Listed struct {
	order.Intent

	CreatedAt time.Time
	Refunded  int64 // of the latest charge, pending refunds too, in the units of Total
	Disputed  bool  // the latest charge was disputed, whatever came of it
}

// pageSize is the largest page of a list (docs.stripe.com/api/pagination).
const pageSize = 100

// List lists every PaymentIntent of the account that was created in [from, to), of every
// scope, newest first, in pages of a hundred with one call each. after is "", or the last
// intent of a page with which an earlier List ended. The times count in whole seconds.
//
// It ends at the first error, an *order.PaymentError: Unavailable and Unknown are worth
// another List after the last page. A restricted key needs "PaymentIntents: Read" and
// "Charges and Refunds: Read".
func (p *Payments) List(
	ctx context.Context, from, to time.Time, after order.IntentID,
) iter.Seq2[[]Listed, error] {
	return func(yield func([]Listed, error) bool) {
		for {
			page, more, err := p.listPage(ctx, listCall(from, to, after))
			if !yield(page, err) || !more {
				return
			}
			after = page[len(page)-1].ID
		}
	}
}

func (p *Payments) listPage(ctx context.Context, c call) (page []Listed, more bool, err error) {
	response, err := p.send(ctx, &c)
	if err != nil {
		return nil, false, err
	}
	return c.classifyList(response)
}

// ReadListed returns one PaymentIntent as List does, in its current state. Its errors are
// those of Read.
func (p *Payments) ReadListed(ctx context.Context, id order.IntentID) (Listed, error) {
	c := readChargeCall(id)
	response, err := p.send(ctx, &c)
	if err != nil {
		return Listed{}, err
	}
	var i paymentIntent
	if err := c.decode(response, &i, errUnreadable); err != nil {
		return Listed{}, err
	}
	l, err := i.listed()
	if err == nil && l.ID != id {
		err = errOtherIntent
	}
	if err != nil {
		return Listed{}, c.fail(order.KindUnknown, response, err)
	}
	return l, nil
}

// listCall is the request of a page. Four levels may be expanded, and the charge is at
// the second (docs.stripe.com/expand).
func listCall(from, to time.Time, after order.IntentID) call {
	params := url.Values{
		"created[gte]": {strconv.FormatInt(from.Unix(), 10)},
		"created[lt]":  {strconv.FormatInt(to.Unix(), 10)},
		"expand[]":     {"data." + latestCharge},
		"limit":        {strconv.Itoa(pageSize)},
	}
	if after != "" {
		params.Set("starting_after", string(after))
	}
	return call{name: "list intents", Request: Request{
		Method: http.MethodGet, Path: intentsPath, Params: params,
	}}
}

var errNotIntents = errors.New("not a list of PaymentIntents")

// classifyList is classify for a page of the list. A page that promises more must not be
// empty.
func (c call) classifyList(p parsed) (page []Listed, more bool, err error) {
	var list struct {
		Data []paymentIntent `json:"data"`
		More bool            `json:"has_more"`
	}
	if err := c.decode(p, &list, errNotIntents); err != nil {
		return nil, false, err
	}
	if list.Data == nil || list.More && len(list.Data) == 0 {
		return nil, false, c.fail(order.KindUnknown, p, errNotIntents)
	}
	page = make([]Listed, 0, len(list.Data))
	for _, i := range list.Data {
		l, err := i.listed()
		if err != nil {
			return nil, false, c.fail(order.KindUnknown, p, err)
		}
		page = append(page, l)
	}
	return page, list.More, nil
}

// listed converts an intent whose latest charge was to be expanded.
func (i *paymentIntent) listed() (Listed, error) {
	if i.LatestCharge != nil && !i.LatestCharge.expanded {
		return Listed{}, errNotExpanded
	}
	intent, err := i.toOrder(order.Failure{})
	switch {
	case errors.Is(err, errNoIntent):
		return Listed{}, err
	case err != nil: // an unknown status
		intent = order.Intent{
			ID:      order.IntentID(i.ID),
			OrderID: order.ID(i.Metadata[metaOrder]), Scope: order.Scope(i.Metadata[metaScope]),
		}
	}
	l := Listed{Intent: intent, CreatedAt: time.Unix(i.Created, 0).UTC()}
	if i.LatestCharge != nil {
		l.Refunded, l.Disputed = i.LatestCharge.Refunded, i.LatestCharge.Disputed
	}
	return l, nil
}
