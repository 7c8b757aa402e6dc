package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
)

// LetterJSON is a dead letter as one line of JSON.
type LetterJSON struct {
	MessageID      string             `json:"messageId"`
	FirstMessageID string             `json:"firstMessageId"`
	OrderID        order.ID           `json:"orderId"`
	RefundID       refund.ID          `json:"refundId,omitempty"`
	Reason         string             `json:"reason"`
	Detail         string             `json:"detail"`
	FirstSent      time.Time          `json:"firstSent"`
	Receives       int                `json:"receives"`
	TimesParked    int                `json:"timesParked"`
	Money          deadletters.Money  `json:"money"`
	Verdict        deadletters.Action `json:"verdict"`
	Advice         string             `json:"advice"`

	Attributes map[string]string `json:"attributes,omitempty"` // these only in show
	Body       string            `json:"body,omitempty"`
	Row        string            `json:"row,omitempty"`
}

// NewLetterJSON converts a dead letter, without its body.
func NewLetterJSON(l deadletters.Letter) LetterJSON {
	return LetterJSON{
		MessageID: l.ID, FirstMessageID: l.FirstID, OrderID: l.OrderID(), RefundID: l.Job.Refund.ID(),
		Reason: l.ReasonShown(), Detail: detail(l), FirstSent: l.FirstSent, Receives: l.Receives,
		TimesParked: l.TimesParked, Money: l.Money, Verdict: l.Action, Advice: l.Advice,
	}
}

// Letter formats a dead letter for a person.
func Letter(l deadletters.Letter, now time.Time) string {
	subject := cmp.Or(string(l.OrderID()), "no order")
	if l.Job.IsRefund() {
		subject += " refund " + string(l.Job.Refund.ID())
	}
	const indent = "\n         "
	var why string
	if d := detail(l); d != "" {
		if len(d) > maxDetail {
			d = d[:maxDetail] + "..."
		}
		why = indent + d
	}
	return fmt.Sprintf("%-8s %s  %s  %s", l.Action, subject, l.ReasonShown(), l.Money) +
		why + indent + l.Advice + indent + fmt.Sprintf("message %s, first sent %s ago, parked %s, received %s\n",
		l.ID, age(now.Sub(l.FirstSent)), times(l.TimesParked), times(l.Receives))
}

// maxDetail is how much of a detail a list prints, in bytes. It is printable ASCII.
const maxDetail = 160

// detail returns what the function wrote, or else why the body is invalid.
func detail(l deadletters.Letter) string {
	if l.Detail == "" && l.Invalid != nil {
		return l.Invalid.Error()
	}
	return l.Detail
}

// age rounds a duration for a person: 6d, 23h, 59m.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", max(d, 0)/time.Minute)
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// shownAttributes returns the attributes of a message. What a producer wrote may be
// personal data, also under the name of an attribute of the function.
func shownAttributes(l deadletters.Letter, whole bool) map[string]string {
	shown := make(map[string]string, len(l.Attributes))
	for name, a := range l.Attributes {
		value := aws.ToString(a.StringValue)
		switch {
		case a.BinaryValue != nil:
			value = fmt.Sprintf("[%d bytes]", len(a.BinaryValue))
		case whole:
			value = strings.ReplaceAll(value, "\n", `\n`)
		case name == sqs.AttrDetail && value == l.Detail:
		case name == sqs.AttrDetail, !deadletters.Parses(name, value):
			value = order.Quote(value)
		}
		shown[name] = value
	}
	return shown
}

// shownBody returns the body without customer and payment, unless whole.
func shownBody(l deadletters.Letter, whole bool) string {
	switch {
	case whole:
		return l.Body
	case l.Invalid != nil:
		return fmt.Sprintf("[body withheld: %d bytes; --body prints it]", len(l.Body))
	case l.Job.IsRefund():
		return jobs.RefundBody(l.Job.Refund)
	}
	const withheld = "[withheld]"
	o := l.Job.Order
	lines := make([]map[string]any, len(o.Lines()))
	for i, line := range o.Lines() {
		lines[i] = map[string]any{"sku": line.SKU, "quantity": line.Quantity, "unitAmount": line.UnitAmount}
	}
	body, _ := json.Marshal(map[string]any{ // only strings, numbers and maps of them
		"orderId": o.ID(), "currency": o.Total().Currency, "lines": lines,
		"customerId": withheld, "payment": withheld,
	})
	return string(body)
}

// DescribeFacts formats what the row and Stripe say.
func DescribeFacts(l deadletters.Letter) string {
	var b strings.Builder
	switch {
	case l.Invalid != nil && l.RowErr == nil && l.Row.OrderID == "":
		return ""
	case l.RowErr != nil:
		fmt.Fprintf(&b, "row        %v\n", l.RowErr)
	case l.Job.IsRefund():
		b.WriteString(Account(l.Account))
	default:
		b.WriteString(Order(l.Row))
	}
	for _, i := range l.Intents {
		fmt.Fprintf(&b, "at Stripe  %s %s, %s\n", i.ID, i.State, i.Total)
	}
	for _, r := range l.Made {
		fmt.Fprintf(&b, "at Stripe  %s %s, %s\n", r.ID, r.Status, r.Total)
	}
	if l.StripeErr != nil {
		fmt.Fprintf(&b, "at Stripe  %v\n", l.StripeErr)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Messages counts messages for a person.
func Messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// WholeLetter formats a dead letter whole: for a person, and as a line of JSON. With who
// pays and how, if it is asked for.
func WholeLetter(l deadletters.Letter, now time.Time, whole bool) (string, LetterJSON) {
	line := NewLetterJSON(l)
	line.Attributes, line.Body, line.Row = shownAttributes(l, whole), shownBody(l, whole), DescribeFacts(l)
	var b strings.Builder
	b.WriteString(Letter(l, now))
	for _, name := range slices.Sorted(maps.Keys(line.Attributes)) {
		fmt.Fprintf(&b, "  %s: %s\n", name, line.Attributes[name])
	}
	fmt.Fprintf(&b, "\n%s\n\n%s\n", line.Body, line.Row)
	return b.String(), line
}
