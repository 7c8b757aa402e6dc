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
)

type row = map[string]types.AttributeValue

func text[T ~string](s T) *types.AttributeValueMemberS {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// rows are an order's rows as the table holds them, events first.
// rows are those of order O1.
func (f fixture) rows() []row {
	f.Helper()
	out, err := f.Client.Query(f.Context(), &sdk.QueryInput{
		TableName: &f.Table, KeyConditionExpression: aws.String("orderId = :id"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: row{":id": text("O1")},
	})
	f.must(err)
	return out.Items
}

func (f fixture) put(item row) {
	f.Helper()
	_, err := f.Client.PutItem(f.Context(), &sdk.PutItemInput{TableName: &f.Table, Item: item})
	f.must(err)
}

func diff(got, want []row) string {
	return cmp.Diff(
		got,
		want,
		cmpopts.IgnoreUnexported(types.AttributeValueMemberS{}, types.AttributeValueMemberN{}),
	)
}

// openRow is the row of order O1 with its intent bound; settledRows are its rows once its
// bank wants the customer.
func openRow() row {
	o := ordertest.Order("O1")
	return row{
		"orderId": text("O1"), "sk": text("order"), "status": text("open"), "fingerprint": text(o.Fingerprint()),
		"customerId": text("CUST987"), "amount": number(3998), "currency": text("usd"),
		"owner": text(
			"first",
		), "attempt": number(1), "leaseUntil": number(at(time.Minute).UnixMilli()), "intentId": text(intent),
		"stripeMode": text(
			"test",
		), "seq": number(0), "createdAt": number(at(0).UnixMilli()), "updatedAt": number(at(time.Second).UnixMilli()),
		"openShard": number(13), "dueAt": number(at(15 * time.Minute).UnixMilli()),
	}
}

func settledRows() []row {
	settled := openRow()
	delete(settled, "owner")
	delete(settled, "leaseUntil")
	settled["status"], settled["failure"], settled["seq"] = text(
		"action_required",
	), text(
		"authentication_required",
	), number(
		1,
	)
	settled["updatedAt"], settled["dueAt"] = number(
		at(2*time.Second).UnixMilli(),
	), number(
		at(24*time.Hour+2*time.Second).UnixMilli(),
	)
	return []row{{
		"orderId": text("O1"), "sk": text("event#000001"), "type": text("order.action_required"), "seq": number(1),
		"from": text(
			"open",
		), "to": text("action_required"), "intentId": text(intent), "failure": text("authentication_required"),
		"amount": number(3998), "currency": text("usd"), "at": number(at(2 * time.Second).UnixMilli()),
		"expiresAt": number(at(90*24*time.Hour + 2*time.Second).Unix()),
	}, settled}
}

func TestRows(t *testing.T) {
	t.Parallel()
	f := open(t)
	c := f.claimed("O1")
	f.must(f.Bind(t.Context(), c, prepared(), at(time.Second)))
	if d := diff(f.rows(), []row{openRow()}); d != "" {
		t.Errorf("rows of an open order (-got +want):\n%s", d)
	}
	f.must(f.Finish(t.Context(), c, order.Outcome{
		Status: order.ActionRequired, Intent: intent, Failure: "authentication_required",
	}, at(2*time.Second)))
	if d := diff(f.rows(), settledRows()); d != "" {
		t.Errorf("only events expire; rows of a settled order (-got +want):\n%s", d)
	}
	f.must(f.Settle(t.Context(), f.loaded("O1"), outcome(order.Paid), at(time.Hour)))
	paid := f.rows()[2]
	for _, gone := range []string{"failure", "openShard", "dueAt", "owner", "leaseUntil", "expiresAt"} {
		if paid[gone] != nil {
			t.Errorf("a paid order still has %s", gone)
		}
	}
}

func TestIndexHoldsOrdersThatWait(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.claimed("claimed")
	released := f.bound("released")
	f.must(f.Release(t.Context(), released, order.ReasonUnavailable, at(2)))
	for _, s := range order.Open.Next() {
		f.settled(order.ID(s), s)
	}
	got, want := map[string]int64{}, map[string]int64{
		"claimed":         at(15 * time.Minute).UnixMilli(),
		"released":        at(15 * time.Minute).UnixMilli(),
		"pending":         at(time.Hour + time.Second).UnixMilli(),
		"action_required": at(24*time.Hour + time.Second).UnixMilli(),
	}
	for shard := range int64(16) {
		out, err := f.Client.Query(t.Context(), &sdk.QueryInput{
			TableName: &f.Table, IndexName: aws.String("open"), KeyConditionExpression: aws.String("openShard = :shard"),
			ExpressionAttributeValues: row{":shard": number(shard)},
		})
		f.must(err)
		for _, item := range out.Items {
			due, err := strconv.ParseInt(item["dueAt"].(*types.AttributeValueMemberN).Value, 10, 64)
			f.must(err)
			got[item["orderId"].(*types.AttributeValueMemberS).Value] = due
		}
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("orders in the index, and when they are due (-got +want):\n%s", d)
	}
}

func TestACorruptRowIsRejected(t *testing.T) {
	t.Parallel()
	f := open(t)
	decimal := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	null, boolean := &types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberBOOL{}
	damaged := map[string]types.AttributeValue{
		"leaseUntil": text(
			"soon",
		), "dueAt": decimal("1.5"), "owner": number(1), "intentId": null, "failure": boolean,
		"lastError": number(0), "status": text("lost"), "attempt": number(0), "fingerprint": nil,
		"customerId": number(1), "stripeMode": number(1),
		"amount": decimal(
			"39.98",
		), "currency": nil, "seq": number(-1), "createdAt": nil, "updatedAt": text("today"),
	}
	for i, name := range slices.Sorted(maps.Keys(damaged)) {
		id := order.ID("O" + strconv.Itoa(i)) // without the attribute's name, which the error has to tell
		item := openRow()
		item["orderId"] = text(id)
		set(item, name, damaged[name])
		f.put(item)
		is := order.ErrCorrupt
		if name == "status" {
			is = order.ErrUnknownVersion
		}
		_, err := f.Load(t.Context(), id)
		f.names(err, is, name)
		_, err = f.Begin(t.Context(), ordertest.Order(id), lease("second"))
		f.names(err, is, name)
	}
	damaged = map[string]types.AttributeValue{
		"seq": nil, "from": number(1), "to": nil, "intentId": number(1), "at": text("today"), "failure": number(1),
	}
	for i, name := range slices.Sorted(maps.Keys(damaged)) {
		id := order.ID("E" + strconv.Itoa(i))
		event := settledRows()[0]
		event["orderId"] = text(id)
		set(event, name, damaged[name])
		f.put(event)
		_, err := f.Load(t.Context(), id)
		f.names(err, order.ErrCorrupt, name)
	}
}

// What stands in a damaged attribute may be a customer's.
func TestTheErrorOfACorruptRowContainsNoValue(t *testing.T) {
	t.Parallel()
	const private = "private-4711"
	for _, name := range []string{"amount", "attempt", "seq", "createdAt", "updatedAt", "leaseUntil", "dueAt"} {
		item := openRow()
		item[name] = text(private)
		if _, err := dynamodb.DecodeOrder(item); err == nil || strings.Contains(err.Error(), private) {
			t.Errorf("with a text in %s: error = %v, want one without it", name, err)
		}
	}
	for _, name := range []string{"orderId", "customerId", "currency", "fingerprint", "owner", "intentId", "failure", "lastError"} {
		item := openRow()
		item[name] = number(4711)
		if _, err := dynamodb.DecodeOrder(item); err == nil || strings.Contains(err.Error(), "4711") {
			t.Errorf("with a number in %s: error = %v, want one without it", name, err)
		}
	}
}

// Times are compared and printed by people in several places, so a record's are all in
// UTC.
func TestTimesAreInUTC(t *testing.T) {
	t.Parallel()
	r, err := dynamodb.DecodeOrder(openRow())
	if err != nil {
		t.Fatal(err)
	}
	e, err := dynamodb.DecodeEvent(settledRows()[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"Until": r.Until, "CreatedAt": r.CreatedAt, "UpdatedAt": r.UpdatedAt, "DueAt": r.DueAt, "an event's At": e.At,
	} {
		if at.Location() != time.UTC {
			t.Errorf("%s is in %v, want UTC", name, at.Location())
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

// names checks that a row is refused for what it is, with an error that says where, and
// nothing about the order.
func (f fixture) names(err, is error, attribute string) {
	f.Helper()
	if !errors.Is(err, is) || !strings.Contains(fmt.Sprint(err)[len("load order "):], attribute) {
		f.Errorf("with a damaged %s: got %v, want %q and where", attribute, err, is)
	}
}

func TestFinishFailsIfItsEventExists(t *testing.T) {
	t.Parallel()
	f := open(t)
	c := f.bound("O1")
	f.put(settledRows()[0])
	f.Proxy.Reset()
	err := f.Finish(t.Context(), c, outcome(order.Paid), at(2))
	if err == nil || isDomain(err) || f.Proxy.Total() != 1 {
		t.Errorf(
			"with an event that exists already: got %d calls and %v, want 1 and an error of the store",
			f.Proxy.Total(),
			err,
		)
	}
	if r := f.loaded("O1"); r.Status != order.Open || r.Owner != "first" {
		t.Errorf("got %+v, want it untouched", r)
	}
}

func TestTheNextEventFollowsARepairedSeq(t *testing.T) {
	t.Parallel()
	f := open(t)
	repaired := openRow() // by a person, after the table was restored
	repaired["seq"] = number(7)
	f.put(repaired)
	c, err := f.Begin(
		t.Context(),
		ordertest.Order("O1"),
		order.Lease{Owner: "second", From: at(time.Hour), Until: at(2 * time.Hour)},
	)
	f.must(err)
	f.must(f.Finish(t.Context(), c, outcome(order.Paid), at(time.Hour)))
	if r := f.loaded("O1"); r.Status != order.Paid || r.Seq != 8 || len(r.Events) != 1 || r.Events[0].Seq != 8 {
		t.Errorf("got %+v, want it paid with event 8", r)
	}
}

func TestUnknownRowsAreSkipped(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.bound("O1")
	want := f.loaded("O1")
	f.put(row{"orderId": text("O1"), "sk": text("refund#000001")})
	if d := cmp.Diff(f.loaded("O1"), want); d != "" {
		t.Errorf("a newer release's row changed the record (-got +want):\n%s", d)
	}
}

func TestLoadReadsSeveralPages(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(openRow())
	for i := range 3 {
		event := settledRows()[0]
		event["sk"], event["seq"] = text(fmt.Sprintf("event#%06d", i+1)), number(int64(i+1))
		event["ballast"] = text(strings.Repeat("x", 390_000))
		f.put(event)
	}
	f.Proxy.Reset()
	r := f.loaded("O1")
	if len(r.Events) != 3 || r.Events[2].Seq != 3 || r.Intent != intent || f.Proxy.Total() < 2 {
		t.Errorf("got %d calls and %+v, want several pages and all rows", f.Proxy.Total(), r)
	}
}

// size is an item's size as DynamoDB bills it (developer guide, item sizes and formats).
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
	typical, settled := openRow(), settledRows()
	id := text("pi_" + strings.Repeat("x", 24)) // as long as Stripe's, and an owner of 128 bits
	typical["owner"], typical["intentId"], settled[0]["intentId"], settled[1]["intentId"] = text(
		strings.Repeat("f", 32),
	), id, id, id
	t.Logf(
		"a typical open order has %d bytes, settled %d, its event %d",
		size(typical),
		size(settled[1]),
		size(settled[0]),
	)
	largest := openRow()
	largest["orderId"], largest["customerId"] = text(strings.Repeat("O", 64)), text(strings.Repeat("C", 128))
	largest["owner"], largest["intentId"] = text(strings.Repeat("f", 32)), text(strings.Repeat("i", 64))
	largest["failure"], largest["lastError"] = text(strings.Repeat("f", 64)), text(order.ReasonReplayed)
	if got := size(largest); got > 1024 {
		t.Errorf("the largest order has %d bytes: every write of it costs two units", got)
	}
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []order.Event{
		{Seq: 1, From: order.Open, To: order.Paid, Intent: intent, At: at(0)},
		{Seq: 999_999, From: order.Open, To: order.Declined, Intent: intent, Failure: "insufficient_funds", At: at(time.Hour)},
	} {
		got, err := dynamodb.DecodeEvent(dynamodb.EncodeEvent("O1", order.Money{Amount: 1, Currency: "usd"}, want))
		if d := cmp.Diff(got, want); err != nil || d != "" {
			t.Errorf("got error %v and (-got +want):\n%s", err, d)
		}
	}
}

// FuzzItem puts anything anywhere: a row is an error or a record that the domain
// believes, never a panic.
func FuzzItem(f *testing.F) {
	for name := range openRow() {
		f.Add(name, byte(0), "")
		f.Add(name, byte(1), "9223372036854775807")
		f.Add(name, byte(2), "true")
	}
	f.Fuzz(func(t *testing.T, name string, kind byte, value string) {
		values := []types.AttributeValue{
			text(
				value,
			), &types.AttributeValueMemberN{Value: value}, &types.AttributeValueMemberBOOL{Value: value == "true"},
			&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberM{}, nil,
		}
		item := openRow()
		set(item, name, values[int(kind)%len(values)])
		if r, err := dynamodb.DecodeOrder(maps.Clone(item)); err == nil {
			if again, err := order.LoadRecord(r); err != nil || !cmp.Equal(r, again) {
				t.Errorf("%+v is believed once and then not: %v", r, err)
			}
		}
		event := settledRows()[0]
		set(event, name, values[int(kind)%len(values)])
		if e, err := dynamodb.DecodeEvent(event); err == nil {
			again, err := dynamodb.DecodeEvent(dynamodb.EncodeEvent("O1", order.Money{}, e))
			if err != nil || !cmp.Equal(e, again) {
				t.Errorf("%+v becomes %+v, error %v", e, again, err)
			}
		}
	})
}

// BenchmarkFreshOrder is the part of a fresh order that is this package's own: one row
// read, one event written.
func BenchmarkFreshOrder(b *testing.B) {
	item, total := openRow(), order.Money{Amount: 3998, Currency: "usd"}
	e := order.Event{Seq: 1, From: order.Open, To: order.Paid, Intent: intent, At: at(0)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dynamodb.DecodeOrder(item); err != nil {
			b.Fatal(err)
		}
		dynamodb.EncodeEvent("O1", total, e)
	}
}
