package receipt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"orderonce/domain/order"
)

// Store keeps receipts. receipttest.TestStore tests this contract.
type Store interface {
	// Load returns the item, strongly consistent. If there is none, it returns one with
	// its ids and Revision 0. It returns order.ErrCorrupt and order.ErrUnknownVersion for
	// an item that this release cannot read.
	Load(ctx context.Context, id order.ID, k Key) (Item, error)

	// Save writes after in place of before, and returns the item as it is afterwards. It
	// returns nil if the item is after already, because the answer to our write was lost,
	// and order.ErrStale with the item that is there, if it has another revision than
	// before. After any other error the write may or may not have happened.
	Save(ctx context.Context, before, after Item) (Item, error)
}

// Payers knows where the receipts of a payment go.
type Payers interface {
	// Payer returns who paid the intent. It returns ErrNoAddress if the provider has no
	// address, or none that a message may be sent to. Every other error is an
	// *order.PaymentError.
	Payer(ctx context.Context, id order.IntentID) (Payer, error)
}

// Payer is who gets the e-mail.
type Payer struct {
	Address Address
	Locales []string // preferred languages such as "de-AT", best first
}

// ErrNoAddress reports a payer without a usable address.
var ErrNoAddress = errors.New("the payer has no usable e-mail address")

// Mailer sends e-mails. It keeps no state.
type Mailer interface {
	// Send makes one request to send a message, and does not repeat it. Every error is a
	// *SendError. Unavailable, Misconfigured and Refused: certainly not sent. Unknown: it
	// may have been sent.
	Send(ctx context.Context, m Mail) (MessageID, error)
}

// Mail is a message. The provider's events about it name its order, its key and its
// attempt.
type Mail struct {
	To                  Address
	Subject, Text, HTML string
	OrderID             order.ID
	Key                 Key
	Attempt             int // number of the claim
}

// SendError is a request to the e-mail service that failed. It contains no address.
type SendError struct {
	Kind order.ErrorKind
	Code string // the service's code, such as "TooManyRequestsException"; "" if it gave none
	Err  error
}

// Error names kind, code and cause.
func (e *SendError) Error() string { return fmt.Sprintf("%s: send e-mail: %v", e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// Address is an e-mail address. It prints as [redacted], so that no log line and no error
// has it; the store does not keep it.
type Address struct{ text string }

// maxAddress is the length of the longest address (RFC 5321, 4.5.3.1: 64 octets, "@", 255
// octets).
const maxAddress = 320

// NewAddress returns an address, or ErrNoAddress unless s is one plain address. White
// space, control characters and the separators of a list are refused, because they would
// add a header or a recipient.
func NewAddress(s string) (Address, error) {
	local, domain, _ := strings.Cut(s, "@")
	bad := func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune("<>()[]\\,;:\"", r)
	}
	one := local != "" && domain != "" && !strings.Contains(domain, "@")
	if !one || len(s) > maxAddress || strings.ContainsFunc(s, bad) {
		return Address{}, ErrNoAddress
	}
	return Address{s}, nil
}

// Reveal returns the text of the address, for the request that needs it.
func (a Address) Reveal() string { return a.text }

// String returns [redacted].
func (Address) String() string { return "[redacted]" }

// GoString returns [redacted].
func (Address) GoString() string { return "[redacted]" }
