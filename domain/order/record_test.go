package order_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// noon is the current time of the tests.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// held returns the record of an open order with a lease of one minute from noon.
func held(o order.Order) order.Record {
	return order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: order.Open,
		Owner: "first", Attempt: 1, Until: noon().Add(time.Minute),
	}
}

func TestCheckClaimReturnsTheFirstReason(t *testing.T) {
	o := ordertest.Order("ORD-1")
	other := ordertest.Order("ORD-2").Fingerprint()
	most := noon().Add(order.MaxLease + order.MaxSkew)
	for _, c := range []struct {
		name string
		from string // owner of the new lease
		edit func(*order.Record)
		want string
	}{
		{"a running lease", "second", func(*order.Record) {}, "order in progress: leased to another attempt until 2026-01-02T12:01:00Z"},
		{"a lease that ends now", "second", func(r *order.Record) {
			r.Until = noon()
		}, "order in progress: leased to another attempt until 2026-01-02T12:00:00Z"},
		{"a lease that has ended", "second", func(r *order.Record) { r.Until = noon().Add(-1) }, "<nil>"},
		{"the longest lease", "second", func(r *order.Record) {
			r.Until = most
		}, "order in progress: leased to another attempt until 2026-01-02T12:20:00Z"},
		{"a lease longer than the maximum", "second", func(r *order.Record) { r.Until = most.Add(1) }, "<nil>"},
		{"no lease", "second", func(r *order.Record) { r.Owner, r.Until = "", time.Time{} }, "<nil>"},
		{"the owner's own lease", "first", func(*order.Record) {}, "<nil>"},
		{"settled", "second", func(r *order.Record) { r.Status = order.Paid }, "order already settled: paid"},
		{"settled by the owner", "first", func(r *order.Record) { r.Status = order.Declined }, "order already settled: declined"},
		{"different content", "second", func(r *order.Record) { r.Fingerprint = other }, order.ErrConflict.Error()},
		{"different content, same owner", "first", func(r *order.Record) { r.Fingerprint = other }, order.ErrConflict.Error()},
		{"different content, settled", "second", func(r *order.Record) {
			r.Fingerprint, r.Status = other, order.Paid
		}, order.ErrConflict.Error()},
		{"a newer version, settled", "first", func(r *order.Record) {
			r.Fingerprint, r.Status = "v2:x", order.Paid
		}, order.ErrUnknownVersion.Error()},
	} {
		r := held(o)
		c.edit(&r)
		err := order.CheckClaim(r, o, order.Lease{Owner: c.from, From: noon(), Until: noon().Add(time.Minute)})
		if got := text(err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		var settled *order.SettledError
		if errors.As(err, &settled) && !reflect.DeepEqual(settled.Record, r) {
			t.Errorf("%s: got record %+v, want %+v", c.name, settled.Record, r)
		}
	}
}

func text(err error) string {
	if err == nil {
		return "<nil>"
	}
	return err.Error()
}

func TestLoadRecordRejectsCorruptRecords(t *testing.T) {
	good := held(ordertest.Order("ORD-1"))
	if got, err := order.LoadRecord(good); err != nil || !reflect.DeepEqual(got, good) {
		t.Errorf("got %+v, %v, want the record unchanged", got, err)
	}
	for want, tt := range map[string]struct {
		is   error
		edit func(*order.Record)
	}{
		"invalid order id":       {order.ErrCorrupt, func(r *order.Record) { r.OrderID = "a b" }},
		"missing status":         {order.ErrCorrupt, func(r *order.Record) { r.Status = "" }},
		`status "lost"`:          {order.ErrUnknownVersion, func(r *order.Record) { r.Status = "lost" }},
		"attempt 0, seq 0":       {order.ErrCorrupt, func(r *order.Record) { r.Attempt = 0 }},
		"attempt 1, seq -1":      {order.ErrCorrupt, func(r *order.Record) { r.Seq = -1 }},
		"missing fingerprint":    {order.ErrCorrupt, func(r *order.Record) { r.Fingerprint = "" }},
		"paid without an intent": {order.ErrCorrupt, func(r *order.Record) { r.Status = order.Paid }},
		"stock without a SKU":    {order.ErrCorrupt, func(r *order.Record) { r.Stock = order.Quantities{} }},
		`stock of "MUG": 0 units`: {order.ErrCorrupt, func(r *order.Record) {
			r.Stock = order.Quantities{"MUG": 0, "TSHIRT": 1}
		}},
		`stock of "MUG": -1 units`: {order.ErrCorrupt, func(r *order.Record) { r.Stock = order.Quantities{"MUG": -1} }},
		`dispute status "late"`: {order.ErrUnknownVersion, func(r *order.Record) {
			r.Dispute = order.Dispute{ID: "du_1", Status: "late"}
		}},
		`dispute status ""`: {order.ErrUnknownVersion, func(r *order.Record) { r.Dispute.ID = "du_1" }},
	} {
		r := good
		tt.edit(&r)
		got, err := order.LoadRecord(r)
		if !errors.Is(err, tt.is) || !strings.Contains(text(err), want) ||
			!reflect.DeepEqual(got, order.Record{}) {
			t.Errorf("got %+v, %v, want error %v with %q", got, err, tt.is, want)
		}
	}
	holding := good
	holding.Stock = order.Quantities{"MUG": 1}
	if _, err := order.LoadRecord(holding); err != nil {
		t.Errorf("record that holds stock: got %v, want no error", err)
	}
	paid := good
	paid.Status, paid.Intent, paid.Seq = order.Paid, "pi_1", 1
	if _, err := order.LoadRecord(paid); err != nil {
		t.Errorf("paid record: got %v, want no error", err)
	}
}
