package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/local/system"
)

// postman kills the receipt function once, after the e-mail service has accepted the
// receipt of its victim and before the row says so. What the service reports about that
// e-mail is lost.
type postman struct {
	victim order.ID
	system atomic.Pointer[system.System]
	once   sync.Once
}

func (p *postman) afterMail(int) {
	s := p.system.Load()
	sent := s.Mail.Sent()
	if len(sent) > 0 && system.EmailOf(sent[len(sent)-1]).OrderID == p.victim {
		p.once.Do(func() { s.Receipt.Kill(nil) })
	}
}

func (p *postman) loses(event json.RawMessage) bool {
	return bytes.Contains(event, []byte(system.MailTag(string(p.victim))))
}

// showReceipts prints how many e-mails were sent for how many receipts, and each doubt.
func showReceipts(w io.Writer, s summary) {
	receipts := 0
	for _, items := range s.Receipts {
		receipts += len(items)
	}
	fmt.Fprintf(w, "Every event came twice. %s for %s: one for each paid order and each refund.\n",
		count(len(s.Mail), "e-mail", "e-mails"), count(receipts, "receipt", "receipts"))
	var doubts []string
	for _, i := range s.Doubts {
		doubts = append(doubts, describeReceipt(i))
	}
	if len(doubts) > 0 {
		fmt.Fprintf(
			w, "Doubtful, listed by `orders receipts`, and not sent again: %s.\n", strings.Join(doubts, ", "),
		)
	}
	fmt.Fprintln(w)
}

func describeReceipt(i receipt.Item) string {
	why := i.Failure
	if why == receipt.Abandoned {
		why = "its worker died between the send and the record"
	}
	if id := i.Key.Refund(); id != "" {
		return fmt.Sprintf("the receipt of refund %s of %s (%s)", id, i.OrderID, why)
	}
	return fmt.Sprintf("the receipt of %s (%s)", i.OrderID, why)
}
