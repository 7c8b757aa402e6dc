package incidents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// restoredTable restores the table to a moment before one order was paid and another one
// arrived. A message of each is delivered again afterwards, when Stripe has forgotten
// every idempotency key.
func restoredTable() Runbook {
	bodies := []string{
		Sale("ORD-5001", 2400, Pays), Sale("ORD-5002", 84900, Takes), Sale("ORD-5003", 2400, Pays),
		Sale("ORD-5004", 2400, Pays),
	}
	var closed []system.Item
	return Runbook{
		Title: "5. The table was restored from a backup",
		Seen: `The orders table was damaged two days ago. Processing was stopped at once, and the table is
restored to the moment before: steps 1 to 3 are done.`,
		takes: 48 * time.Hour,
		happens: func(i *Incident) {
			i.post(bodies[:2]...)
			backup := i.items()
			paid := i.intent("ORD-5002")
			i.Stripe.Machine(func(m *stripetest.Machine) { must(m.Settle(i.Stripe.Now(), paid, true)) })
			i.operate("refresh ORD-5002")
			i.post(bodies[2])
			i.begin(bodies[3])
			i.operate("cancel ORD-5004 --yes")
			i.stops()
			i.post(bodies...)
			i.Advance(48 * time.Hour)
			i.Stripe.Machine(func(m *stripetest.Machine) { m.ForgetKeys() })
			closed = i.closed()
			i.remove(i.Options.Table, i.items()...)
			i.put(i.Options.Table, backup...)
		},
		events: map[string]func(*Incident){
			"the closed orders are copied from the damaged table": func(i *Incident) { i.copies(closed) },
			"processing is resumed":                               (*Incident).resumes,
		},
		leads: map[order.ID]order.Status{
			"ORD-5001": order.Paid, "ORD-5002": order.Paid, "ORD-5003": order.Paid, "ORD-5004": order.Canceled,
		},
	}
}

// begin claims an order as a worker does that dies before it prepares a payment.
func (i *Incident) begin(body string) {
	job, err := jobs.NewDecoder().Decode(body)
	must(err)
	now := i.Stripe.Now()
	_, err = order.Begin(i.ctx, i.Store, job.Order, order.Lease{Owner: "died", From: now, Until: now}, nil)
	must(err)
}

// documented returns the expression of an option of the commands that copy the closed
// orders, with its names and values.
func (i *Incident) documented(
	option string,
) (expression *string, names map[string]string, values system.Item) {
	guide, err := os.ReadFile(filepath.Join(i.setup.Root, Page))
	must(err)
	found := regexp.MustCompile("(?s)" + option + ` [\\\s]*"([^"]+)"[\\\s]*` +
		`--expression-attribute-names '(.*?)'[\\\s]*--expression-attribute-values[\\\s]*'(.*?)'`).FindSubmatch(guide)
	if found == nil {
		must(fmt.Errorf("%s has no %s", Page, option))
	}
	var texts map[string]struct{ S string }
	must(json.Unmarshal(found[2], &names))
	must(json.Unmarshal(found[3], &texts))
	values = system.Item{}
	for name, text := range texts {
		values[name] = &types.AttributeValueMemberS{Value: text.S}
	}
	return new(string(found[1])), names, values
}

// closed returns the items of the orders that the documented scan selects, each row
// before its events.
func (i *Incident) closed() (all []system.Item) {
	filter, names, values := i.documented("--filter-expression")
	out, err := i.administrator().Scan(i.ctx, &sdk.ScanInput{
		TableName: &i.Options.Table, FilterExpression: filter,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	must(err)
	everything := i.items()
	for _, row := range out.Items {
		for _, item := range slices.Backward(everything) {
			if system.Text(item, "orderId") == system.Text(row, "orderId") {
				all = append(all, item)
			}
		}
	}
	return all
}

// copies puts items under the documented condition.
func (i *Incident) copies(items []system.Item) {
	condition, names, values := i.documented("--condition-expression")
	for _, item := range items {
		_, err := i.administrator().PutItem(i.ctx, &sdk.PutItemInput{
			TableName: &i.Options.Table, Item: item, ConditionExpression: condition,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		must(err)
	}
}
