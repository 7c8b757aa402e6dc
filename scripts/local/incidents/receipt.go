package incidents

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/ses/sestest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// doubtfulReceipt kills the receipt function twice: once when SES has accepted the
// e-mail, whose events are lost, and once before the request arrives.
func doubtfulReceipt() Runbook {
	const sent, unsent = "ORD-9001", "ORD-9002"
	var killed atomic.Int64 // requests
	return Runbook{
		Title: "9. A receipt is doubtful",
		Seen: `The alarm receipts-doubtful. The customer of ORD-9001 has a receipt, the customer of ORD-9002
has none. Nobody needs a second one.`,
		options: func(i *Incident, o *system.Options) {
			o.Publish, o.Receipt = i.built("publish"), i.built("receipt")
			o.FunctionTimeout, o.Visibility = 6*time.Second, 7*time.Second // the test waits for two leases
			o.Env = map[string]string{"STRIPE_TIMEOUT": "2s", "SES_TIMEOUT": "2s", "ORDER_BUDGET": "5s"}
			kills := func(at int) func(number int) {
				return func(number int) {
					if s := i.running.Load(); s != nil && number == at {
						killed.Add(1)
						s.Receipt.Kill(nil)
					}
				}
			}
			o.BeforeMail, o.AfterMail = kills(2), kills(1)
			o.LoseMailEvent = func(event json.RawMessage) bool {
				return strings.Contains(string(event), system.MailTag(sent))
			}
		},
		happens: func(i *Incident) {
			i.post(Sale(sent, 2400, Pays))
			i.Mail.Fail(sestest.Fault{Kind: sestest.LoseBefore})
			i.post(Sale(unsent, 2400, Pays))
		},
		leads: map[order.ID]order.Status{sent: order.Paid, unsent: order.Paid},
		over: func(_ *Incident, b invariants.Books) (broken []string) {
			if len(b.Mail) != 2 || len(b.Doubts) != 0 || killed.Load() != 2 {
				broken = append(broken, fmt.Sprintf(
					"%d e-mails, %d doubts and %d kills, want 2, one for each customer, none and 2",
					len(b.Mail), len(b.Doubts), killed.Load()))
			}
			return broken
		},
	}
}
