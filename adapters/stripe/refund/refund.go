// Package refund is refund.Provider over Stripe's API: it gives money of a charge back.
//
// A refund must not be resent, as net/http does with a POST that has an idempotency key,
// so each session has a connection of its own. A restricted key needs "PaymentIntents:
// Read" and "Charges and Refunds: Read", and to make refunds "Charges and Refunds:
// Write".
package refund

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	stripego "github.com/stripe/stripe-go/v76"
	striperefund "github.com/stripe/stripe-go/v76/refund"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

const metaRefund = "refundId"

// Refunds makes refunds at Stripe. It is safe for concurrent use.
type Refunds struct {
	client  *stripe.Client
	options stripe.Options
}

var (
	_ refund.Provider = (*Refunds)(nil)
	_ refund.Session  = (*session)(nil)
)

// New makes a Refunds. It needs Options.Now, and Options.Dedicated in place of Transport.
// Like stripe.New it sends nothing.
func New(o stripe.Options) *Refunds { return &Refunds{stripe.New(o), o} }

// Open returns a session. It connects at the first Read or ReadRefund.
func (r *Refunds) Open(context.Context) refund.Session { //nolint:ireturn // as the port
	return &session{Refunds: r}
}

// session is a refund.Session over the connection of its last Read.
type session struct {
	*Refunds

	conn *connection // nil before the first call and after a failed Read
}

// Close closes the connection.
func (s *session) Close() {
	if s.conn != nil {
		s.conn.close()
	}
}

func (s *session) over() *stripe.Client { return s.client.Over(s.conn.exchange) }

// Read reads the intent with its charge and the ten newest refunds in one request
// (docs.stripe.com/changelog/2022-11-15/deprecates-charges-auto-expand). It reads older
// refunds in pages of a hundred. Each Read opens a connection of its own, which the next
// Create uses: a session that reads again may have lost the first.
func (s *session) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	s.Close()
	s.conn = newConnection(s.options)
	ledger, err := s.read(ctx, id)
	if err != nil {
		s.Close()
		s.conn = nil // no Create after a failed Read
		return refund.Ledger{}, err
	}
	return ledger, nil
}

func (s *session) read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	call := s.over().IntentCall("read intent "+string(id)+" with its refunds", id)
	call.Permission = stripe.ReadCharges
	r, err := call.Intent(call.Read(ctx, stripe.LatestCharge+".refunds"))
	if err == nil && r.InError {
		err = call.Reject(nil)
	}
	if err != nil {
		return refund.Ledger{}, err
	}
	ledger, more, err := ledgerOf(call, r)
	for err == nil && more {
		var page stripe.List[refund.Refund]
		page, err = s.list(ctx, id, ledger.Refunds[len(ledger.Refunds)-1].ID)
		ledger.Refunds, more = append(ledger.Refunds, page.Data...), page.More
	}
	return ledger, err
}

// list returns a page of the intent's refunds that are older than the one given.
func (s *session) list(
	ctx context.Context, id order.IntentID, after refund.ProviderID,
) (stripe.List[refund.Refund], error) {
	params := &stripego.RefundListParams{PaymentIntent: stripego.String(string(id))}
	params.Context = ctx
	params.Limit = stripego.Int64(stripe.PageSize)
	params.StartingAfter = stripego.String(string(after))
	call := s.over().IntentCall("list refunds of intent "+string(id), id)
	call.Permission = stripe.ReadCharges
	err := striperefund.Client{B: call}.List(params).Err()
	return stripe.Page(call, err, errNotRefunds, object.refund)
}

// ReadRefund reads one refund.
func (s *session) ReadRefund(ctx context.Context, id refund.ProviderID) (refund.Refund, error) {
	if s.conn == nil {
		s.conn = newConnection(s.options)
		s.conn.until = time.Time{} // no Create without a Read
	}
	params := new(stripego.RefundParams)
	params.Context = ctx
	call := s.over().Call("read refund " + string(id))
	call.Permission = stripe.ReadCharges
	if !order.ValidReference(string(id)) {
		return refund.Refund{}, call.Fail(order.KindMisconfigured, stripe.ErrNotID)
	}
	_, err := striperefund.Client{B: call}.Get(string(id), params)
	r, err := stripe.Object(call, err, errNotRefund, object.refund)
	if err == nil && r.ID != id {
		return refund.Refund{}, call.Fail(order.KindUnknown, errNotRefund)
	}
	return r, err
}

// Create makes a refund. Every parameter follows from the order and the scope, as those
// of a charge. Without an amount Stripe would refund what is left.
//
// A replayed response shows the refund as it was when it was made. It may have failed
// since, so Create reads it again.
func (s *session) Create(ctx context.Context, o refund.CreateParams) (refund.Refund, error) {
	params := &stripego.RefundParams{
		PaymentIntent: stripego.String(string(o.Intent)),
		Amount:        stripego.Int64(o.Amount),
		Reason:        stripego.String(string(o.Reason)),
		Metadata: map[string]string{
			stripe.MetaOrder: string(o.OrderID), stripe.MetaScope: string(s.options.Scope), metaRefund: string(o.ID),
		},
	}
	params.Context = ctx
	params.SetIdempotencyKey(o.Key)
	client := s.client
	if s.conn != nil {
		client = s.over()
	}
	call := client.IntentCall("refund intent "+string(o.Intent), o.Intent)
	call.Permission, call.FinalRefusal = "Charges and Refunds: Write", true
	if s.conn == nil {
		return refund.Refund{}, call.Fail(order.KindUnavailable, fmt.Errorf("%w: %w", stripe.ErrNotSent, errNoRead))
	}
	_, err := striperefund.Client{B: call}.New(params)
	r, err := stripe.Object(call, err, errNotRefund, object.refund)
	if err != nil || !call.Replayed() {
		return r, err
	}
	if r, err = s.ReadRefund(ctx, r.ID); err != nil { // whatever its kind, the refund was made
		return refund.Refund{}, call.Fail(order.KindUnknown, err)
	}
	return r, nil
}

var (
	errNotRefund  = errors.New("response without a refund")
	errNotRefunds = errors.New("not a list of refunds")
	errNoCharge   = errors.New("intent succeeded without a successful charge")
	errNoDate     = errors.New("response without a valid Date header")
)

// ledgerOf returns the ledger that a response shows, and whether there are older refunds.
func ledgerOf(call *stripe.Call, r stripe.Result) (l refund.Ledger, more bool, err error) {
	l = refund.Ledger{Intent: r.Intent}
	if l.Now, err = call.Date(); err != nil {
		return refund.Ledger{}, false, call.Fail(order.KindUnknown, errNoDate)
	}
	charge, succeeded := r.Charge.Object, r.State == order.Succeeded
	switch {
	case !r.Charge.Named && !succeeded:
		return l, false, nil
	case !r.Charge.Named, succeeded && charge != nil && captured(charge) <= 0:
		return refund.Ledger{}, false, call.Fail(order.KindUnknown, errNoCharge)
	case charge == nil || charge.Refunds == nil:
		return refund.Ledger{}, false, call.Fail(order.KindMisconfigured, stripe.ErrNotExpanded)
	}
	var list stripe.List[object]
	if json.Unmarshal(*charge.Refunds, &list) != nil {
		list.Data = nil
	}
	refunds, err := stripe.Convert(list, errNotRefunds, object.refund)
	if err != nil {
		return refund.Ledger{}, false, call.Fail(order.KindUnknown, err)
	}
	l.Charged, l.Disputed, l.Refunds = captured(charge), charge.Disputed, refunds.Data
	return l, refunds.More, nil
}

func captured(c *stripe.Charge) int64 {
	if c.Status != stripego.ChargeStatusSucceeded {
		return 0
	}
	return c.Captured
}

// object is the part of a refund that is read (docs.stripe.com/api/refunds/object).
type object struct {
	ID       refund.ProviderID     `json:"id"`
	Status   stripego.RefundStatus `json:"status"`
	Amount   int64                 `json:"amount"`
	Currency string                `json:"currency"`
	Intent   order.IntentID        `json:"payment_intent"`
	Metadata map[string]string     `json:"metadata"`
	Reason   string                `json:"reason"`
	Failure  string                `json:"failure_reason"`
}

func (o object) refund() (refund.Refund, error) {
	if o.ID == "" {
		return refund.Refund{}, errNotRefund
	}
	r := refund.Refund{
		ID: o.ID, Status: statusOf(o.Status), Intent: o.Intent,
		Total:   order.Money{Amount: o.Amount, Currency: order.Currency(o.Currency)},
		OrderID: order.ID(o.Metadata[stripe.MetaOrder]), Scope: order.Scope(o.Metadata[stripe.MetaScope]),
		For: refund.ID(o.Metadata[metaRefund]), Reason: refund.Reason(o.Reason),
	}
	if r.Status == refund.Failed {
		r.Failure = cmp.Or(o.Failure, string(o.Status))
	}
	if r.Status == "" {
		r.Status, r.Failure = refund.Pending, refund.UnknownStatus
	}
	return r, nil
}

// statusOf returns the domain's status, or "" for one that is null, which Stripe
// documents, or not known: such a refund must not hide the order's other refunds, and
// counts as given back, like one that waits for the bank or for the customer
// (docs.stripe.com/refunds). One that was canceled gave nothing back, like one that
// failed.
func statusOf(s stripego.RefundStatus) refund.Status {
	switch s {
	case stripego.RefundStatusPending, stripego.RefundStatusRequiresAction:
		return refund.Pending
	case stripego.RefundStatusSucceeded:
		return refund.Succeeded
	case stripego.RefundStatusFailed, stripego.RefundStatusCanceled:
		return refund.Failed
	}
	return ""
}
