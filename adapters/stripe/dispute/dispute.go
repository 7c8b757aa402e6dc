// Package dispute is settle.Disputes over Stripe's API. A restricted key needs "Disputes:
// Read".
package dispute

import (
	"context"
	"errors"
	"time"

	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/dispute"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// Disputes reads the disputes of a charge. It is safe for concurrent use.
type Disputes struct{ client *stripe.Client }

var _ settle.Disputes = (*Disputes)(nil)

// New makes a Disputes. Like stripe.New it sends nothing.
func New(o stripe.Options) *Disputes { return &Disputes{stripe.New(o)} }

// object is the part of a dispute that is read (docs.stripe.com/api/disputes/object).
type object struct {
	ID      order.DisputeID        `json:"id"`
	Intent  order.IntentID         `json:"payment_intent"`
	Status  stripego.DisputeStatus `json:"status"`
	Created int64                  `json:"created"` // seconds since 1970
}

var errNotDisputes = errors.New("not a list of the intent's disputes")

// Disputes lists the disputes of an intent's charge (docs.stripe.com/api/disputes/list).
// It reads one page: no charge has a hundred disputes.
func (d *Disputes) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	params := &stripego.DisputeListParams{PaymentIntent: stripego.String(string(id))}
	params.Context = ctx
	params.Limit = stripego.Int64(stripe.PageSize)
	call := d.client.IntentCall("list disputes of intent "+string(id), id)
	call.Permission = "Disputes: Read"
	err := dispute.Client{B: call}.List(params).Err()
	page, err := stripe.Page(call, err, errNotDisputes, func(o object) (order.Dispute, error) {
		if o.ID == "" || o.Intent != id {
			return order.Dispute{}, errNotDisputes
		}
		return order.Dispute{ID: o.ID, Status: StatusOf(o.Status), CreatedAt: time.Unix(o.Created, 0)}, nil
	})
	return page.Data, err
}

// prevented is the status of a dispute that ended before it began. It is newer than
// stripe-go v76.
const prevented stripego.DisputeStatus = "prevented"

// StatusOf returns what came of a dispute. An inquiry ("warning") that was closed became
// none. An unknown status is open, so that a person looks.
func StatusOf(s stripego.DisputeStatus) order.DisputeStatus {
	switch s {
	case stripego.DisputeStatusWon, stripego.DisputeStatusWarningClosed, prevented:
		return order.DisputeWon
	case stripego.DisputeStatusLost:
		return order.DisputeLost
	case stripego.DisputeStatusNeedsResponse, stripego.DisputeStatusUnderReview,
		stripego.DisputeStatusWarningNeedsResponse, stripego.DisputeStatusWarningUnderReview:
	}
	return order.DisputeOpen
}
