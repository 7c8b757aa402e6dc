package stripe

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

var _ order.Disputes = (*Payments)(nil)

const disputesPath = "/v1/disputes"

// dispute is the part of a dispute that is read (docs.stripe.com/api/disputes/object).
type dispute struct {
	ID      order.DisputeID      `json:"id"`
	Intent  order.IntentID       `json:"payment_intent"`
	Status  stripe.DisputeStatus `json:"status"`
	Created int64                `json:"created"` // seconds since 1970
}

// Disputes lists the disputes of an intent's charge (docs.stripe.com/api/disputes/list).
// It reads one page, the largest possible: no charge has a hundred disputes.
func (p *Payments) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	c := call{name: "list disputes of intent " + string(id), intent: id, Request: Request{
		Method: http.MethodGet, Path: disputesPath,
		Params: url.Values{"payment_intent": {string(id)}, "limit": {"100"}},
	}}
	response, err := p.send(ctx, &c)
	if err != nil {
		return nil, err
	}
	return c.classifyDisputes(response)
}

var errNotDisputes = errors.New("not a list of the intent's disputes")

// classifyDisputes is classify for a list of disputes.
func (c call) classifyDisputes(p parsed) ([]order.Dispute, error) {
	var page struct {
		Data []dispute `json:"data"`
	}
	if err := c.decode(p, &page, errNotDisputes); err != nil {
		return nil, err
	}
	if page.Data == nil {
		return nil, c.fail(order.KindUnknown, p, errNotDisputes)
	}
	all := make([]order.Dispute, 0, len(page.Data))
	for _, d := range page.Data {
		if d.ID == "" || d.Intent != c.intent {
			return nil, c.fail(order.KindUnknown, p, errNotDisputes)
		}
		all = append(all, order.Dispute{
			ID: d.ID, Status: disputeStatus(d.Status), CreatedAt: time.Unix(d.Created, 0),
		})
	}
	return all, nil
}

// prevented is the status of a dispute that ended before it began. It is newer than
// stripe-go v76.
const prevented stripe.DisputeStatus = "prevented"

// disputeStatus returns what came of a dispute. An inquiry ("warning") that was closed
// became no dispute. An unknown status is open, so that a person looks at the dispute.
func disputeStatus(s stripe.DisputeStatus) order.DisputeStatus {
	switch s {
	case stripe.DisputeStatusWon, stripe.DisputeStatusWarningClosed, prevented:
		return order.DisputeWon
	case stripe.DisputeStatusLost:
		return order.DisputeLost
	case stripe.DisputeStatusNeedsResponse, stripe.DisputeStatusUnderReview,
		stripe.DisputeStatusWarningNeedsResponse, stripe.DisputeStatusWarningUnderReview:
	}
	return order.DisputeOpen
}
