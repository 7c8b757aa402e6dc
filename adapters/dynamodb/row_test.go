package dynamodb_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

type row = map[string]types.AttributeValue

func text[T ~string](s T) *types.AttributeValueMemberS {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// rows returns the rows of an order, events first.
func (f fixture) rows(id order.ID) []row {
	f.Helper()
	out, err := f.Client.Query(f.Context(), &sdk.QueryInput{
		TableName: &f.Table, KeyConditionExpression: aws.String("orderId = :id"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: row{":id": text(id)},
	})
	f.must(err)
	return out.Items
}

func (f fixture) put(item row) {
	f.Helper()
	_, err := f.Client.PutItem(f.Context(), &sdk.PutItemInput{TableName: &f.Table, Item: item})
	f.must(err)
}

// values makes cmp compare the attribute values of rows.
func values() cmp.Option { //nolint:ireturn // cmp's own type
	return cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{})
}

func millis(d time.Duration) *types.AttributeValueMemberN { return number(at(d).UnixMilli()) }

// openRow returns the row of order O1 with a bound intent.
func openRow() row {
	o := ordertest.Order("O1")
	return row{
		"orderId": text("O1"), "sk": text("order"), "status": text("open"), "fingerprint": text(o.Fingerprint()),
		"customerId": text("CUST987"), "amount": number(3998), "currency": text("usd"),
		"owner": text("first"), "attempt": number(1), "leaseUntil": millis(time.Minute),
		"intentId": text(intent), "stripeMode": text("test"), "seq": number(0),
		"createdAt": millis(0), "updatedAt": millis(time.Second),
		"openShard": dynamodb.ShardKey(dynamodb.OrderShards, "O1"), "dueAt": millis(15 * time.Minute), "traceparent": text(traceparent),
	}
}

// settledRows returns the event and the row of order O1 when it needs authentication.
func settledRows() []row {
	settled := openRow()
	delete(settled, "owner")
	delete(settled, "leaseUntil")
	settled["status"], settled["failure"] = text("action_required"), text("authentication_required")
	settled["seq"], settled["updatedAt"] = number(1), millis(2*time.Second)
	settled["dueAt"] = millis(24*time.Hour + 2*time.Second)
	event := row{
		"orderId": text("O1"), "sk": text("event#000001"), "type": text("order.action_required"), "seq": number(1),
		"from": text("open"), "to": text("action_required"), "intentId": text(intent),
		"failure": text("authentication_required"), "amount": number(3998), "currency": text("usd"),
		"at": millis(2 * time.Second), "traceparent": text(traceparent),
		"expiresAt": number(at(90*24*time.Hour + 2*time.Second).Unix()),
	}
	return []row{event, settled}
}

func TestRows(t *testing.T) {
	t.Parallel()
	f := open(t)
	c := f.claimed("O1")
	f.must(c.Bind(t.Context(), f, prepared(), at(time.Second)))
	if diff := cmp.Diff([]row{openRow()}, f.rows("O1"), values()); diff != "" {
		t.Errorf("rows of an open order (-want +got):\n%s", diff)
	}
	f.must(c.Finish(t.Context(), f, order.Outcome{
		Status: order.ActionRequired, Intent: intent, Failure: "authentication_required",
	}, at(2*time.Second)))
	if diff := cmp.Diff(settledRows(), f.rows("O1"), values()); diff != "" {
		t.Errorf("rows of a settled order (-want +got):\n%s", diff)
	}
	f.settled("O2")
	paid := f.rows("O2")[1]
	for _, gone := range []string{"openShard", "dueAt", "owner", "leaseUntil", "expiresAt"} {
		if paid[gone] != nil {
			t.Errorf("paid order: got attribute %s, want none", gone)
		}
	}
}

// The error names the attribute and not its value, which may be personal data.
func TestACorruptRowIsRejected(t *testing.T) {
	t.Parallel()
	f := open(t)
	decimal := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	null, boolean := &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{}
	word, digits := text("private-4711"), number(4711)
	for prefix, tt := range map[string]struct { // no prefix has an attribute's name
		item    func() row
		damaged map[string]types.AttributeValue
	}{
		"O": {openRow, map[string]types.AttributeValue{
			"leaseUntil": word, "dueAt": decimal("4711.5"), "owner": digits, "intentId": null, "failure": boolean,
			"lastError": digits, "status": word, "attempt": number(0), "fingerprint": nil, "customerId": digits,
			"stripeMode": digits, "amount": word, "currency": nil, "seq": number(-1), "createdAt": nil, "updatedAt": word,
			"disputeId": digits, "disputeStatus": digits, "disputedAt": word,
		}},
		"E": {func() row { return settledRows()[0] }, map[string]types.AttributeValue{
			"seq": nil, "from": digits, "to": nil, "intentId": digits, "at": word, "failure": digits,
			"disputeId": digits, "disputeStatus": nil, "disputedAt": word,
		}},
	} {
		for i, name := range slices.Sorted(maps.Keys(tt.damaged)) {
			id := order.ID(prefix + strconv.Itoa(i))
			item := tt.item()
			item["orderId"], item["disputeId"] = text(id), text("du_pretend")
			item["disputeStatus"], item["disputedAt"] = text("open"), millis(48*time.Hour)
			set(item, name, tt.damaged[name])
			f.put(item)
			want := order.ErrCorrupt
			if name == "status" {
				want = order.ErrUnknownVersion
			}
			_, loadErr := f.Load(t.Context(), id)
			errs := map[string]error{"load": loadErr}
			if prefix == "O" {
				_, errs["begin"] = order.Begin(t.Context(), f, ordertest.Order(id), lease("second"), nil)
			}
			for call, err := range errs {
				if !errors.Is(err, want) || !names(err, name) || name != "status" && strings.Contains(err.Error(), "4711") {
					t.Errorf("%s of %s with a corrupt %s: got %v, want %v with the attribute", call, id, name, err, want)
				}
			}
		}
	}
}

func set(item row, name string, value types.AttributeValue) {
	if value == nil {
		delete(item, name)
		return
	}
	item[name] = value
}

// names reports whether the error contains the attribute after "load order " or "begin
// order ".
func names(err error, attribute string) bool {
	return strings.Contains(fmt.Sprint(err)[len("load order "):], attribute)
}

func TestFinishFailsIfItsEventExists(t *testing.T) {
	t.Parallel()
	f := open(t)
	c := f.bound("O1")
	f.put(settledRows()[0])
	f.Proxy.Reset()
	err := c.Finish(t.Context(), f, asPaid(), at(2))
	if err == nil || isDomain(err) || f.Proxy.Total() != 1 {
		t.Errorf("got %d calls and error %v, want 1 and a store error", f.Proxy.Total(), err)
	}
	if r := f.loaded("O1"); r.Status != order.Open || r.Owner != "first" {
		t.Errorf("got record %+v, want it unchanged", r)
	}
}

func TestARecreatedOrderDoesNotOverwriteEvents(t *testing.T) {
	t.Parallel()
	f := open(t)
	event := settledRows()[0] // the second event remained when the order was lost
	event["sk"], event["seq"] = text("event#000002"), number(2)
	f.put(event)
	o := ordertest.Order("O1")
	lost := order.Record{OrderID: "O1", Total: o.Total(), Fingerprint: o.Fingerprint(), Intent: intent}
	f.must(settle.Recreate(t.Context(), f, lost, at(time.Hour)))
	f.must(order.Settle(t.Context(), f, f.loaded("O1"), asPaid(), at(2*time.Hour)))
	if events := f.loaded("O1").Events; len(events) != 2 || events[1].Seq != 3 || events[1].To != order.Paid {
		t.Errorf("got events %+v, want the remaining one and a third", events)
	}
}

func TestLoadReadsSeveralPagesAndSkipsRowsOfANewerRelease(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(openRow())
	f.put(row{"orderId": text("O1"), "sk": text("other#000001")})
	for i := range 3 {
		event := settledRows()[0]
		event["sk"], event["seq"] = text(fmt.Sprintf("event#%06d", i+1)), number(int64(i+1))
		event["padding"] = text(strings.Repeat("x", 390_000))
		f.put(event)
	}
	f.Proxy.Reset()
	r := f.loaded("O1")
	if len(r.Events) != 3 || r.Events[2].Seq != 3 || r.Intent != intent || f.Proxy.Total() < 2 {
		t.Errorf("got %d calls and %+v, want several pages and all events", f.Proxy.Total(), r)
	}
}

// size returns an item's size as DynamoDB bills it (developer guide, item sizes and
// formats).
func size(item row) (bytes int) {
	for name, value := range item {
		bytes += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			bytes += len(v.Value)
		case *types.AttributeValueMemberN:
			bytes += (len(v.Value)+1)/2 + 1
		}
	}
	return bytes
}

func TestEveryRowIsOneWriteUnit(t *testing.T) {
	t.Parallel()
	largest := openRow()
	largest["orderId"], largest["customerId"] = text(strings.Repeat("O", 64)), text(strings.Repeat("C", 128))
	largest["owner"], largest["intentId"] = text(strings.Repeat("f", 32)), text(strings.Repeat("i", 64))
	largest["failure"], largest["lastError"] = text(strings.Repeat("f", 64)), text(order.ReasonReplayed)
	if got := size(largest); got > 1024 {
		t.Errorf("largest order: got %d bytes, want at most 1024, one write unit", got)
	}
}

// record returns what an event item takes from its record.
func record() order.Record {
	return order.Record{OrderID: "O1", Total: order.Money{Amount: 3998, Currency: "usd"}, Trace: traceparent}
}

// FuzzItem sets any attribute to any value. Decoding must return an error or a valid
// record, and never panic.
func FuzzItem(f *testing.F) {
	for name := range openRow() {
		f.Add(name, byte(0), "")
		f.Add(name, byte(1), "9223372036854775807")
		f.Add(name, byte(2), "true")
	}
	f.Fuzz(func(t *testing.T, name string, kind byte, value string) {
		values := []types.AttributeValue{
			text(value), &types.AttributeValueMemberN{Value: value},
			&types.AttributeValueMemberBOOL{Value: value == "true"}, &types.AttributeValueMemberNULL{Value: true},
			&types.AttributeValueMemberM{}, nil,
		}
		item := openRow()
		set(item, name, values[int(kind)%len(values)])
		if r, err := dynamodb.DecodeOrder(maps.Clone(item)); err == nil {
			again, err := order.LoadRecord(r)
			if err != nil || !cmp.Equal(r, again) || r.CreatedAt.Location() != time.UTC { // as it is printed
				t.Errorf("decoded record %+v: got %+v, %v from LoadRecord, want it unchanged", r, again, err)
			}
		}
		event := settledRows()[0]
		set(event, name, values[int(kind)%len(values)])
		if e, err := dynamodb.DecodeEvent(event); err == nil {
			again, err := dynamodb.DecodeEvent(dynamodb.EncodeEvent(record(), e))
			if err != nil || !cmp.Equal(e, again) {
				t.Errorf("round trip: got %+v, %v, want %+v", again, err, e)
			}
		}
	})
}
