package receipt

import (
	"cmp"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Status is the state of a receipt.
type Status string

// The statuses. Sent, Delivered and Bounced are known from the provider; it may report a
// later one at any time.
const (
	Sending   Status = "sending"   // claimed: an e-mail may be sent now
	Sent      Status = "sent"      // the provider accepted it
	Delivered Status = "delivered" // the recipient's mail server accepted it
	Bounced   Status = "bounced"   // the recipient's mail server refused it
	Doubtful  Status = "doubtful"  // it may have been sent; it is never sent again by itself
	Failed    Status = "failed"    // certainly not sent; the next request claims it again
)

// ParseStatus returns the status in s, or order.ErrUnknownVersion if this release does
// not know it.
func ParseStatus(s string) (Status, error) {
	switch status := Status(s); status {
	case Sending, Sent, Delivered, Bounced, Doubtful, Failed:
		return status, nil
	}
	return "", fmt.Errorf("%w: receipt status %q", order.ErrUnknownVersion, s)
}

// MessageID is the provider's id of an e-mail.
type MessageID string

// Item is a receipt as the store keeps it. It has no address and no text of the e-mail.
type Item struct {
	OrderID   order.ID
	Key       Key
	Status    Status
	Owner     string    // of the claim; "" unless it is sending
	Until     time.Time // end of the owner's lease
	Attempt   int       // number of claims, and of decisions to send Again
	Message   MessageID // "" until the provider named it
	Failure   string    // of a failed or doubtful receipt: the provider's code, or why
	Revision  int       // number of writes; 0 of an item that does not exist
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Validate returns order.ErrCorrupt for an item that no Processor can have written.
func (i Item) Validate() error {
	_, err := ParseKey(string(i.Key))
	switch {
	case !order.ValidID(string(i.OrderID)):
		err = fmt.Errorf("%w: invalid order id", order.ErrCorrupt)
	case err != nil:
		err = fmt.Errorf("%w: %w", order.ErrCorrupt, err)
	case i.Revision < 1 || i.Attempt < 0:
		err = fmt.Errorf("%w: revision %d, attempt %d", order.ErrCorrupt, i.Revision, i.Attempt)
	case (i.Status == Sending) != (i.Owner != ""):
		err = fmt.Errorf("%w: status %s with owner %q", order.ErrCorrupt, i.Status, i.Owner)
	}
	return err
}

// next returns the item with another status, without a claim.
func (i Item) next(s Status, failure string, at time.Time) Item {
	i.Status, i.Failure, i.Owner, i.Until = s, failure, "", time.Time{}
	return i.touched(at)
}

// touched counts a write.
func (i Item) touched(at time.Time) Item {
	if i.Revision == 0 {
		i.CreatedAt = at
	}
	i.Revision, i.UpdatedAt = i.Revision+1, at
	return i
}

// claimed returns the item under a new claim.
func (i Item) claimed(l order.Lease) Item {
	i = i.next(Sending, "", l.From)
	i.Owner, i.Until, i.Message = l.Owner, l.Until, ""
	i.Attempt++
	return i
}

// abandoned reports whether the owner of the claim ended without a result: it died
// between the claim and the record, or could not write the record.
func (i Item) abandoned(now time.Time) bool {
	return i.Status == Sending && !order.LeaseRunning(i.Until, now)
}

// Report is what the provider reports about an e-mail, or what its response to a send
// says.
type Report struct {
	Message MessageID
	Status  Status // Sent, Delivered, Bounced or Failed
	Code    string // of Bounced and Failed
	Attempt int    // that sent the e-mail, see Item
}

// Follow returns the item after a report. changed is false if the item stays as it is:
// the report is older than what the item shows, or about another e-mail of the receipt.
// Reports arrive repeated and in any order. One about the e-mail of an earlier attempt
// says nothing about the e-mail that is being sent now, or may have been.
func Follow(i Item, r Report, at time.Time) (after Item, changed bool) {
	other := i.Message != "" && i.Message != r.Message || r.Attempt < i.Attempt
	known := rank(i.Status, i.Message)
	if i.Failure == ResolvedByOperator {
		known = 0
	}
	if other || rank(r.Status, r.Message) <= known {
		return i, false
	}
	i.Message = r.Message
	return i.next(r.Status, r.Code, at), true
}

// rank orders what is known of an e-mail. A receipt that failed without a message was not
// accepted by the provider; with one, the provider stopped it later.
func rank(s Status, m MessageID) int {
	switch s {
	case Sending, Doubtful:
		return 0
	case Sent:
		return 1
	case Delivered:
		return 2
	case Bounced:
		return 3
	case Failed:
		if m != "" {
			return 3
		}
	}
	return 0
}

// ResolvedByOperator is the Failure of a receipt about which a person decided. What the
// provider reports of it counts more.
const ResolvedByOperator = "resolved_by_operator"

// Resolve returns a doubtful item as a person decides: sent, or failed, so that the next
// request sends it. A person may decide otherwise later, unless the provider has reported
// the e-mail since. Any other item is an error that names its status.
func Resolve(i Item, sent bool, at time.Time) (Item, error) {
	decided, s := i.Failure == ResolvedByOperator, Failed
	if sent {
		s = Sent
	}
	switch {
	case decided && i.Status == s:
		return i, nil
	case decided, i.Status == Doubtful:
		return i.next(s, ResolvedByOperator, at), nil
	}
	known := cmp.Or(i.Status, "not there")
	return i, fmt.Errorf("receipt is %s: neither in doubt nor decided by a person", known)
}

// Wanted reports whether a person decided that the e-mail is to be sent, and no request
// has claimed it since.
func (i Item) Wanted() bool { return i.Status == Failed && i.Failure == ResolvedByOperator }

// Again returns a sent, delivered or bounced item as failed, for a payer who does not
// have the e-mail, so that the next request sends another one. It counts as an attempt,
// so that no report about the e-mail of before replaces this decision. A failed item
// stays as it is. Any other one is an error that names its status.
func Again(i Item, at time.Time) (Item, error) {
	switch {
	case i.Status == Failed:
		return i, nil
	case rank(i.Status, "") == 0:
		return i, fmt.Errorf("receipt is %s: only one that was sent is sent again", cmp.Or(i.Status, "not there"))
	}
	i.Attempt, i.Message = i.Attempt+1, ""
	return i.next(Failed, ResolvedByOperator, at), nil
}
