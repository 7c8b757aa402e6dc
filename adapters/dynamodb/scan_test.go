package dynamodb_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// A page may have no order: DynamoDB filters what it has read.
func TestAPageWithoutOrdersIsNotTheLast(t *testing.T) {
	t.Parallel()
	s := newStore(&pretendTable{respond: func(call int) *http.Response {
		if call == 1 {
			return respond(http.StatusOK, `{"Items":[],"LastEvaluatedKey":{"orderId":{"S":"ORD-1"},"sk":{"S":"event#000001"}}}`)
		}
		return respond(http.StatusOK, `{"Items":[]}`)
	}})
	var next []string
	for page, err := range refundtable.New(s).Scan(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		next = append(next, page.Next)
	}
	if diff := cmp.Diff(next, []string{"ORD-1/event#000001", ""}); diff != "" {
		t.Errorf("pages end at (-got +want):\n%s", diff)
	}
}

func TestScanReturnsEveryOrderWithItsRefunds(t *testing.T) {
	t.Parallel()
	f := open(t)
	store := refundtable.New(f.Store)
	want := map[order.ID]order.Status{}
	for n := range 5 { // 350 KB each: DynamoDB reads at most 1 MB in a call
		id := order.ID(fmt.Sprintf("ORD-%d", n))
		f.settled(id, order.Paid)
		f.pad(id, strings.Repeat("x", 350_000))
		want[id] = order.Paid
	}
	r, err := refund.New(refund.Draft{OrderID: "ORD-3", RefundID: "R1", Amount: 5, Reason: "duplicate"})
	f.must(err)
	c, err := refund.Begin(t.Context(), store, r, lease("refund"))
	f.must(err)
	f.must(c.Finish(t.Context(), store, refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, at(0)))
	want["ORD-3"] = order.PartiallyRefunded

	f.put(row{"orderId": text("CORRUPT"), "sk": text("order"), "status": text("paid")})
	want["CORRUPT"] = ""

	var pages []refundtable.Page
	for page, err := range store.Scan(t.Context(), "") {
		f.must(err)
		pages = append(pages, page)
	}
	if len(pages) < 2 {
		t.Fatalf("got %d pages, want several", len(pages))
	}
	got := map[order.ID]order.Status{}
	for _, page := range pages {
		for _, r := range page.Rows {
			got[r.OrderID] = r.Status
			account, err := store.Load(t.Context(), r.OrderID)
			corrupt := r.OrderID == "CORRUPT"
			if diff := cmp.Diff(account, r.Account); diff != "" || errors.Is(r.Err, order.ErrCorrupt) != corrupt ||
				(err != nil) != corrupt || (r.Err != nil) != corrupt {
				t.Errorf("account of %s: %v, %v (-want +got):\n%s", r.OrderID, err, r.Err, diff)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	rest := 0
	for page, err := range store.Scan(t.Context(), pages[0].Next) {
		f.must(err)
		rest += len(page.Rows)
	}
	if rest != len(want)-len(pages[0].Rows) {
		t.Errorf("a scan after the first page got %d orders, want the %d others", rest, len(want)-len(pages[0].Rows))
	}
}

func TestScanEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	s := refundtable.New(newStore(alwaysResponds(http.StatusBadRequest, `{"__type":"AccessDeniedException"}`)))
	for _, after := range []string{"", "ORD-1/order", "no position"} {
		n := 0
		for page, err := range s.Scan(t.Context(), after) {
			if n++; len(page.Rows) != 0 || err == nil || !strings.Contains(err.Error(), after) {
				t.Errorf("got %v, %v, want an error that names %q", page, err, after)
			}
		}
		if n != 1 {
			t.Errorf("got %d results, want one error", n)
		}
	}
}

// pad adds an attribute that no release writes.
func (f fixture) pad(id order.ID, value string) {
	f.Helper()
	f.must(editable{f.Store, f.Harness}.set(f.Context(), id, "padding", value))
}
