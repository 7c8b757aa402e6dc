package stripe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

const (
	refundsPath = "/v1/refunds"
	metaRefund  = "refundId"
	// chargeRefunds is the field of a PaymentIntent whose expansion has the ten newest
	// refunds (docs.stripe.com/changelog/2022-11-15/deprecates-charges-auto-expand).
	chargeRefunds = latestCharge + ".refunds"
)

// Refunds makes refunds at Stripe. It is safe for concurrent use.
type Refunds struct {
	sender
	scope   order.Scope
	options Options
}

var (
	_ refund.Provider = (*Refunds)(nil)
	_ refund.Session  = (*session)(nil)
)

// NewRefunds makes a Refunds. It needs Options.Now, and Options.Dedicated in place of
// Transport. Like New it sends nothing.
func NewRefunds(o Options) *Refunds {
	return &Refunds{sender: newSender(o), scope: o.Scope, options: o}
}

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

// Read reads the intent with its charge and the ten newest refunds in one request. It
// reads older refunds in pages of a hundred. Each Read opens a connection of its own,
// which the next Create uses: a session that reads again may have lost the first.
func (s *session) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	s.Close()
	s.conn = newConnection(s.apiKey, s.options)
	ledger, err := s.read(ctx, id)
	if err != nil {
		s.Close()
		s.conn = nil // no Create after a failed Read
		return refund.Ledger{}, err
	}
	return ledger, nil
}

func (s *session) read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	c := readCall(id)
	c.name += " with its refunds"
	c.Params = url.Values{"expand[]": {chargeRefunds}}
	response, err := s.send(ctx, &c)
	if err != nil {
		return refund.Ledger{}, err
	}
	ledger, more, err := c.classifyLedger(response)
	for err == nil && more {
		var page []refund.Refund
		page, more, err = s.list(ctx, id, ledger.Refunds[len(ledger.Refunds)-1].ID)
		ledger.Refunds = append(ledger.Refunds, page...)
	}
	return ledger, err
}

// list returns a page of the intent's refunds that are older than the one given.
func (s *session) list(
	ctx context.Context, id order.IntentID, after refund.ProviderID,
) (page []refund.Refund, more bool, err error) {
	c := call{name: "list refunds of intent " + string(id), intent: id, Request: Request{
		Method: http.MethodGet, Path: refundsPath,
		Params: url.Values{"payment_intent": {string(id)}, "limit": {"100"}, "starting_after": {string(after)}},
	}}
	response, err := s.send(ctx, &c)
	if err != nil {
		return nil, false, err
	}
	return c.classifyRefunds(response)
}

// ReadRefund reads one refund.
func (s *session) ReadRefund(ctx context.Context, id refund.ProviderID) (refund.Refund, error) {
	if s.conn == nil {
		s.conn = newConnection(s.apiKey, s.options)
		s.conn.until = time.Time{} // no Create without a Read
	}
	c := call{name: "read refund " + string(id), refund: id, Request: Request{
		Method: http.MethodGet, Path: refundsPath + "/" + string(id),
	}}
	response, err := s.send(ctx, &c)
	if err != nil {
		return refund.Refund{}, err
	}
	return c.classifyRefund(response)
}

// Create makes a refund. A replayed response shows the refund as it was when it was made.
// It may have failed since, so Create reads it again.
func (s *session) Create(ctx context.Context, o refund.Order) (refund.Refund, error) {
	c := createRefundCall(o, s.scope)
	if s.conn == nil {
		return refund.Refund{}, c.fail(order.KindUnavailable, parsed{}, fmt.Errorf("%w: %w", ErrNotSent, errNoRead))
	}
	response, err := s.send(ctx, &c)
	if err != nil {
		return refund.Refund{}, err
	}
	r, err := c.classifyRefund(response)
	if err != nil || !response.replayed {
		return r, err
	}
	if r, err = s.ReadRefund(ctx, r.ID); err != nil { // whatever its kind, the refund was made
		return refund.Refund{}, c.fail(order.KindUnknown, response, err)
	}
	return r, nil
}

// send sends a request over the session's connection.
func (s *session) send(ctx context.Context, c *call) (parsed, error) {
	over := s.sender
	over.exchange = s.conn.exchange
	return over.send(ctx, c)
}

// createRefundCall is the request of Session.Create. Every parameter follows from the
// order and the scope, as in prepareCall. Without an amount Stripe would refund what is
// left.
func createRefundCall(o refund.Order, scope order.Scope) call {
	return call{name: "refund intent " + string(o.Intent), intent: o.Intent, Request: Request{
		Method: http.MethodPost, Path: refundsPath, Key: o.Key,
		Params: url.Values{
			"payment_intent":               {string(o.Intent)},
			"amount":                       {strconv.FormatInt(o.Amount, 10)},
			"reason":                       {string(o.Reason)},
			"metadata[" + metaOrder + "]":  {string(o.OrderID)},
			"metadata[" + metaScope + "]":  {string(scope)},
			"metadata[" + metaRefund + "]": {string(o.ID)},
		},
	}}
}

var (
	errNotRefund  = errors.New("response without a refund")
	errNotRefunds = errors.New("not a list of refunds")
	errNoCharge   = errors.New("intent succeeded without a successful charge")
	errNoDate     = errors.New("response without a valid Date header")
)

// classifyLedger is classify for an intent with its refunds. It also reports whether
// there are older refunds.
func (c call) classifyLedger(p parsed) (l refund.Ledger, more bool, err error) {
	if p.status != http.StatusOK {
		return refund.Ledger{}, false, c.reject(p, p.err)
	}
	r, err := c.classify(p)
	if err != nil {
		return refund.Ledger{}, false, err
	}
	l = refund.Ledger{Intent: r.Intent}
	if l.Now, err = http.ParseTime(p.date); err != nil {
		return refund.Ledger{}, false, c.fail(order.KindUnknown, p, errNoDate)
	}
	charge := p.intent.LatestCharge
	switch succeeded := r.State == order.Succeeded; {
	case charge == nil && !succeeded:
		return l, false, nil
	case charge == nil, succeeded && charge.expanded && charge.captured() <= 0:
		return refund.Ledger{}, false, c.fail(order.KindUnknown, p, errNoCharge)
	case !charge.expanded || charge.Refunds == nil:
		return refund.Ledger{}, false, c.fail(order.KindMisconfigured, p, errNotExpanded)
	}
	l.Charged, l.Disputed = charge.captured(), charge.Disputed
	l.Refunds, err = c.convert(p, *charge.Refunds)
	return l, charge.Refunds.More, err
}

// classifyRefunds is classify for a page of refunds.
func (c call) classifyRefunds(p parsed) (page []refund.Refund, more bool, err error) {
	var list refundList
	if err := c.decode(p, &list, errNotRefunds); err != nil {
		return nil, false, err
	}
	page, err = c.convert(p, list)
	return page, list.More, err
}

// classifyRefund is classify for one refund.
func (c call) classifyRefund(p parsed) (refund.Refund, error) {
	var object refundObject
	if err := c.decode(p, &object, errNotRefund); err != nil {
		return refund.Refund{}, err
	}
	r, err := object.toRefund()
	if err == nil && c.refund != "" && r.ID != c.refund {
		err = errNotRefund
	}
	if err != nil {
		return refund.Refund{}, c.fail(order.KindUnknown, p, err)
	}
	return r, nil
}

// convert converts a list of refunds to those of the domain. A list that promises more
// must not be empty.
func (c call) convert(p parsed, list refundList) ([]refund.Refund, error) {
	if list.Data == nil || list.More && len(list.Data) == 0 {
		return nil, c.fail(order.KindUnknown, p, errNotRefunds)
	}
	converted := make([]refund.Refund, 0, len(list.Data))
	for _, object := range list.Data {
		r, err := object.toRefund()
		if err != nil {
			return nil, c.fail(order.KindUnknown, p, err)
		}
		converted = append(converted, r)
	}
	return converted, nil
}

// refundList is a list of refunds, newest first.
type refundList struct {
	Data []refundObject `json:"data"`
	More bool           `json:"has_more"`
}

// refundObject is the part of a refund that is read (docs.stripe.com/api/refunds/object).
type refundObject struct {
	ID       refund.ProviderID   `json:"id"`
	Status   stripe.RefundStatus `json:"status"`
	Amount   int64               `json:"amount"`
	Currency string              `json:"currency"`
	Intent   order.IntentID      `json:"payment_intent"`
	Metadata map[string]string   `json:"metadata"`
	Reason   string              `json:"reason"`
	Failure  string              `json:"failure_reason"`
}

func (o refundObject) toRefund() (refund.Refund, error) {
	if o.ID == "" {
		return refund.Refund{}, errNotRefund
	}
	status, known := refundStatus(o.Status)
	r := refund.Refund{
		ID: o.ID, Status: status, Intent: o.Intent,
		Total:   order.Money{Amount: o.Amount, Currency: order.Currency(o.Currency)},
		OrderID: order.ID(o.Metadata[metaOrder]), Scope: order.Scope(o.Metadata[metaScope]),
		For: refund.ID(o.Metadata[metaRefund]), Reason: refund.Reason(o.Reason),
	}
	switch {
	case !known:
		r.Failure = refund.UnknownStatus
	case status == refund.Failed:
		r.Failure = cmp.Or(o.Failure, string(o.Status))
	}
	return r, nil
}

// refundStatus returns the domain's status. A refund that was canceled gave nothing back,
// like one that failed. One that waits for the customer counts as given back, like one
// that waits for the bank (docs.stripe.com/refunds). So does one whose status is null,
// which Stripe documents, or not known: it must not hide the order's other refunds.
func refundStatus(s stripe.RefundStatus) (status refund.Status, known bool) {
	switch s {
	case stripe.RefundStatusPending, stripe.RefundStatusRequiresAction:
		return refund.Pending, true
	case stripe.RefundStatusSucceeded:
		return refund.Succeeded, true
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		return refund.Failed, true
	}
	return refund.Pending, false
}

// isRefund reports whether a path is that of refunds.
func isRefund(path string) bool {
	return path == refundsPath || strings.HasPrefix(path, refundsPath+"/")
}
