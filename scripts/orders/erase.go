package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// erased is what rows have in place of a person's id: the same for everybody, so that it
// tells no two persons apart.
const erased = "erased"

type erase struct {
	ID     string `arg:"" optional:"" name:"customer" help:"The customerId."`
	Order  string `placeholder:"ORDER_ID" help:"Only print the customerId of this order."`
	Caller bool   `help:"It is the hash of a caller."`
	Scan   bool   `help:"Allow a scan of the whole table, which this needs."`
	Yes    bool   `help:"Do not ask, for scripts."`
}

// Validate returns an error unless one of the two is named.
func (e erase) Validate() error {
	if (e.ID == "") == (e.Order == "") {
		return errors.New("want a customerId, or --order, which prints that of an order")
	}
	return nil
}

// Run replaces the id of a person in the rows.
func (e erase) Run(ctx context.Context, d cloud.Deployment) error {
	if e.ID == erased {
		return fmt.Errorf("%q is what rows have in place of an id that was erased", erased)
	}
	if e.Order != "" {
		r, err := d.Store().Load(ctx, order.ID(e.Order))
		if err != nil {
			return d.Explain(err)
		}
		text := fmt.Sprintf("customerId  %s\n", cmp.Or(r.CustomerID, "-"))
		return d.Result(text, map[string]string{"customerId": r.CustomerID})
	}
	if err := allowScan(ctx, d, e.Scan, "add --scan"); err != nil {
		return err
	}
	found, err := e.find(ctx, d)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "table %s in %s, rows of %s: %d\n\n", d.Table, d.AWS.Region, e.ID, len(found))
	if len(found) == 0 {
		which := "it is the producer's id, not an order or Stripe's customer; " +
			"orders erase --order ORDER_ID prints it"
		if e.Caller {
			which = "it is the hash in the item intake of an order"
		}
		return shell.Left("no row has the %s %q: %s\nIf you erased it before, nothing is left here.",
			e.attribute(), e.ID, which)
	}
	if !e.Yes && !d.Confirms("Type this id to erase it from these rows for ever: ", e.ID) {
		return shell.ErrNotConfirmed
	}
	for n, item := range found {
		if err := e.replace(ctx, d, item); err != nil {
			return fmt.Errorf("%w\n%d of %d rows erased: run the same command again", err, n, len(found))
		}
	}
	text := fmt.Sprintf("rows erased: %d\n", len(found))
	if !e.Caller {
		text += elsewhere(e.ID)
	}
	return d.Result(text, map[string]int{"erased": len(found)})
}

// attribute is the one that names the person. No two kinds of items share it.
func (e erase) attribute() string {
	if e.Caller {
		return "caller"
	}
	return "customerId"
}

// find scans the table for the items that name the person, and prints them.
func (e erase) find(ctx context.Context, d cloud.Deployment) (found []dynamodb.Item, err error) {
	pages := sdk.NewScanPaginator(d.Store().DB, &sdk.ScanInput{
		TableName: &d.Table, FilterExpression: aws.String(e.attribute() + " = :id"),
		ExpressionAttributeValues: dynamodb.Item{":id": dynamodb.Text(e.ID)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("scan the table: %w", err)
		}
		for _, item := range page.Items {
			decoder := dynamodb.Fields{Item: item} // a row that cannot be decoded is erased, too
			total := order.Money{
				Amount: decoder.Number("amount"), Currency: order.Currency(decoder.Text("currency")),
			}
			fmt.Fprintf(d.People(), "%-24s %-18s %14s\n", dynamodb.TextOf(item, "orderId"),
				cmp.Or(dynamodb.TextOf(item, "status"), "put by HTTP"), total)
		}
		found = append(found, page.Items...)
	}
	return found, nil
}

// replace erases the id from one item, and changes nothing else: no condition of another
// writer names this attribute. It succeeds if the item has another id or is gone.
func (e erase) replace(ctx context.Context, d cloud.Deployment, item dynamodb.Item) error {
	name := e.attribute()
	_, err := d.Store().DB.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &d.Table, Key: dynamodb.Item{"orderId": item["orderId"], "sk": item["sk"]},
		ConditionExpression:       aws.String(name + " = :id"),
		UpdateExpression:          aws.String("SET " + name + " = :erased"),
		ExpressionAttributeValues: dynamodb.Item{":id": dynamodb.Text(e.ID), ":erased": dynamodb.Text(erased)},
	})
	if _, refused := dynamodb.Refused(err); refused {
		err = nil
	}
	return err
}

// elsewhere names the places that the command does not reach.
func elsewhere(id string) string {
	return strings.Join([]string{
		"It is still elsewhere, see docs/guides/operate.md#erase-a-person:",
		"dead letters   orders dead-letters discard --field customerId=" + id + " --force",
		"saved letters  grep " + id + " FILE, of each orders dead-letters discard --save=FILE",
		"queues         messages that wait have it, for 7 days at most",
		"backups        have it for 35 days, copies of yours longer: after a restore, erase it again",
		"stream         DynamoDB keeps the rows of before for 24 hours",
		"Stripe         has its customer: delete it there",
		"by HTTP        if callers are persons: orders erase --caller HASH --scan",
		"receipts       SES may list the address, and its events that are parked contain it",
	}, "\n  ") + "\n"
}
