package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// found is a page of a search.
type found struct {
	stripe.APIResource
	Data []answer `json:"data"`
}

var errFoundNoID = errors.New("a search result without an id")

// Find searches for the intents whose metadata name the order and this scope. Stripe's search lags behind writes: less
// than a minute, and up to an hour in an outage (docs.stripe.com/search), so this is for orders that are older than a day.
func (p *Payments) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	// Neither an order id nor a scope can hold a quote: order.ValidID, order.NewScope.
	query := fmt.Sprintf("metadata['%s']:'%s' AND metadata['%s']:'%s'", metaOrder, id, metaScope, p.scope)
	c := call{
		name: "find intents of order " + string(id), method: http.MethodGet, path: search,
		query: url.Values{"query": {query}}.Encode(),
	}
	var page found
	answered, err := p.send(ctx, c, &page)
	if err != nil {
		return nil, err
	}
	if answered != nil || page.LastResponse == nil || page.LastResponse.StatusCode != http.StatusOK {
		c.secret = p.key
		_, err := c.classify(c.parse(&answer{APIResource: page.APIResource}, answered))
		return nil, err
	}
	intents := make([]order.Intent, 0, len(page.Data))
	for _, a := range page.Data {
		i, err := c.intentOf(&a, order.Failure{})
		switch {
		case a.ID == "":
			return nil, c.fail(order.Unknown, page.LastResponse.RequestID, errFoundNoID)
		case err != nil: // in a state that we never make; it exists all the same
			i = order.Intent{ID: order.IntentID(a.ID)}
		}
		intents = append(intents, i)
	}
	return intents, nil
}
