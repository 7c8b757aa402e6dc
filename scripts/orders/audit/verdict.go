package audit

import (
	"fmt"
	"strings"

	"orderonce/domain/order"
)

// Risk is what goes wrong if messages of an order are processed as long as a finding
// stands; "" if nothing does.
type Risk string

// The risks.
const (
	ChargedAgain  Risk = "charged_again"  // its message may charge the order again
	RefundedTwice Risk = "refunded_twice" // a refund's message may give the same money back again
)

// risk returns the risk of a finding of o. An open order whose intent was charged has
// none: its message finds the charge.
func risk(o Order, c Class) Risk {
	switch {
	case c == RefundsDiffer:
		return RefundedTwice
	case o.Row == nil:
		return ChargedAgain
	case c == RowOlder && o.Row.Intent != "", c == RowUnreadable:
		return ""
	case o.Row.Status == order.Open, o.Row.Status == order.Refused:
		return ChargedAgain
	}
	return ""
}

// Verdict says whether it is safe to process messages.
type Verdict struct {
	Safe       bool         `json:"safe"`
	Risks      map[Risk]int `json:"risks,omitempty"` // orders
	InProgress int          `json:"inProgress,omitempty"`
}

// Verdict returns the verdict, after some orders were repaired.
func (s Summary) Verdict(repaired map[Risk]int) Verdict {
	v := Verdict{Safe: true, Risks: map[Risk]int{}, InProgress: s.InProgress}
	for risk, n := range s.Risks {
		if left := n - repaired[risk]; left > 0 {
			v.Safe, v.Risks[risk] = false, left
		}
	}
	return v
}

// String returns the verdict in one line.
func (v Verdict) String() string {
	var why []string
	if n := v.Risks[ChargedAgain]; n > 0 {
		why = append(why, fmt.Sprintf("orders that a message may charge again: %d", n))
	}
	if n := v.Risks[RefundedTwice]; n > 0 {
		why = append(why, fmt.Sprintf("orders of which a message may give money back twice: %d", n))
	}
	line := "verdict: safe to process every order that Stripe knows"
	if !v.Safe {
		line = "verdict: not yet safe to process: " + strings.Join(why, "; ")
	}
	if v.InProgress > 0 {
		line += fmt.Sprintf("; not compared, because a worker has them: %d", v.InProgress)
	}
	return line
}
