package verify_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/orders/verify"
)

// now is an hour after the orders of these tests were paid.
func now() time.Time { return time.UnixMilli(1_790_003_600_000).UTC() }

// files are the four inputs about one order, ID, as a reader of files gets them.
type files map[verify.Source]string

// history returns the files of an order that was paid, sent again, sent with other
// content, half given back, and disputed.
func history() files {
	event := func(seq int, from, to, more string) string {
		return fmt.Sprintf(`{"Item":{"orderId":{"S":"ID"},"sk":{"S":"event#%06d"},"seq":{"N":"%d"},"from":{"S":"%s"},"to":{"S":"%s"},`+
			`"at":{"N":"179000000%d000"},"amount":{"N":"4000"},"currency":{"S":"usd"}%s}}`+"\n", seq, seq, from, to, seq, more)
	}
	bus := func(seq int, from, to string) string {
		return fmt.Sprintf(`2026-11-21T12:00:00.000Z {"source":"orderonce.test","detail":{"orderId":"ID","seq":%d,"from":"%s","status":"%s",`+
			`"occurredAt":"2026-09-21T14:13:2%d.000Z"}}`+"\n", seq, from, to, seq)
	}
	line := func(message, id, verdict, reason, status string) string {
		return fmt.Sprintf(`{"timestamp":"2026-09-21T14:13:20Z","message":"%s","order_id":"ID","message_id":"%s","delivery":1,`+
			`"verdict":"%s","reason":"%s","status":"%s","refund_id":"R"}`+"\n", message, id, verdict, reason, status)
	}
	const intent = `{"object":"payment_intent","id":"pi_ID","status":"succeeded","amount":4000,"amount_received":4000,"currency":"usd",` +
		`"created":1790000000,"customer":"cus_canary","metadata":{"orderId":"ID","scope":"test","fingerprint":"v1:f","note":"canary"},` +
		`"latest_charge":"ch_ID"}`
	return files{
		verify.Rows: event(1, "open", "paid", "") +
			event(2, "paid", "partially_refunded", `,"refundId":{"S":"R"},"refundStatus":{"S":"succeeded"},"refundAmount":{"N":"2000"}`) +
			event(3, "partially_refunded", "partially_refunded",
				`,"disputeId":{"S":"du_ID"},"disputeStatus":{"S":"won"},"disputedAt":{"N":"1790000002000"}`) +
			`{"Item":{"orderId":{"S":"ID"},"sk":{"S":"order"},"amount":{"N":"4000"},"currency":{"S":"usd"},"fingerprint":{"S":"v1:f"},` +
			`"customerId":{"S":"canary"},"status":{"S":"partially_refunded"},"attempt":{"N":"1"},"seq":{"N":"3"},"intentId":{"S":"pi_ID"},` +
			`"createdAt":{"N":"1790000000000"},"updatedAt":{"N":"1790000003000"},"refundable":{"N":"2000"},"disputeId":{"S":"du_ID"},` +
			`"disputeStatus":{"S":"won"},"disputedAt":{"N":"1790000002000"},"refund#R":{"M":{"amount":{"N":"2000"},"reason":{"S":"duplicate"},` +
			`"status":{"S":"succeeded"},"fingerprint":{"S":"v1:r"},"attempt":{"N":"1"},"keySeq":{"N":"1"},"stripeRefundId":{"S":"re_ID"},` +
			`"createdAt":{"N":"1790000001000"},"updatedAt":{"N":"1790000002000"}}}}}` + "\n",
		verify.Stripe: `{"object":"list","data":[` + intent + "]}\n" +
			`{"object":"charge","id":"ch_ID","status":"succeeded","amount":4000,"amount_captured":4000,"currency":"usd",` +
			`"created":1790000000,"payment_intent":"pi_ID","metadata":{"orderId":"ID","scope":"test"}}` + "\n" +
			`{"object":"refund","id":"re_ID","status":"succeeded","amount":2000,"currency":"usd","created":1790000001,` +
			`"payment_intent":"pi_ID","metadata":{"orderId":"ID","scope":"test","refundId":"R"}}` + "\n" +
			`{"object":"dispute","id":"du_ID","status":"won","amount":4000,"currency":"usd","created":1790000002,"payment_intent":` + intent + "}\n",
		verify.Events: bus(1, "open", "paid") + bus(2, "paid", "partially_refunded") + bus(1, "open", "paid") +
			bus(3, "partially_refunded", "partially_refunded"),
		verify.Logs: "START\n" + line("order", "m1", "done", "settled", "paid") + line("order", "m2", "done", "duplicate", "paid") +
			line("order", "m3", "park", "conflict", "") + line("refund", "m4", "done", "settled", ""),
	}
}

// paid returns the files of an order that was paid, and no more.
func (f files) paid() files {
	first := func(from verify.Source, n int) string { return strings.SplitAfter(f[from], "\n")[n] }
	row, _, _ := strings.Cut(first(verify.Rows, 3), `,"refundable"`)
	return files{
		verify.Rows:   first(verify.Rows, 0) + strings.NewReplacer("partially_refunded", "paid", `"N":"3"`, `"N":"1"`).Replace(row) + "}}\n",
		verify.Stripe: first(verify.Stripe, 0), verify.Events: first(verify.Events, 0), verify.Logs: first(verify.Logs, 1),
	}
}

func (f files) of(id string) files {
	f = maps.Clone(f)
	for from, text := range f {
		f[from] = strings.ReplaceAll(text, "ID", id)
	}
	return f
}

func (f files) read(t *testing.T, to *verify.Folder) {
	t.Helper()
	for from, read := range map[verify.Source]func() error{
		verify.Rows:   func() error { return to.ReadRows(strings.NewReader(f[verify.Rows])) },
		verify.Stripe: func() error { return to.ReadStripe(strings.NewReader(f[verify.Stripe])) },
		verify.Events: func() error { return to.ReadEvents(strings.NewReader(f[verify.Events])) },
		verify.Logs:   func() error { return to.ReadLogs("a.log", strings.NewReader(f[verify.Logs])) },
	} {
		if err := read(); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
	}
}

// folder opens a folder, and a verifier that appends its findings.
func folder(t *testing.T, dir string, found *[]verify.Report) (*verify.Folder, *verify.Verifier) {
	t.Helper()
	f, err := verify.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	take := func(r verify.Report) error { *found = append(*found, r); return nil }
	f.Scope, f.Leaked = "test", take
	have := map[verify.Source]bool{verify.Rows: true, verify.Stripe: true, verify.Events: true, verify.Logs: true}
	return f, &verify.Verifier{Rest: now(), Now: now(), Have: have, Ordered: true, Found: take}
}

// plant is an edit of one file of an order, and the invariants that it breaks.
type plant struct {
	from     verify.Source
	old, new string // old "" appends
	want     string
}

func plants() map[string]plant {
	const refund = `{"object":"refund","id":"re_2","status":"succeeded","amount":%d,"currency":"usd","payment_intent":"pi_ID",` +
		`"metadata":{"orderId":"ID","scope":"test","refundId":"%s"}}`
	base := history()
	line := func(n int) string { return strings.SplitAfter(base[verify.Logs], "\n")[n] }
	item := func(n int) string { return strings.SplitAfter(base[verify.Rows], "\n")[n] }
	onBus := func(n int) string { return strings.SplitAfter(base[verify.Events], "\n")[n] }
	object := func(n int) string { return strings.SplitAfter(base[verify.Stripe], "\n")[n] }
	return map[string]plant{
		"charged twice":            {verify.Stripe, "", strings.ReplaceAll(object(1), "_ID", "_2"), "I1 I4"},
		"other amount":             {verify.Stripe, `"amount_captured":4000`, `"amount_captured":5000`, "I2"},
		"charge without row":       {verify.Rows, base[verify.Rows], "", "I2 I4 I5 I16 I19"},
		"paid without charge":      {verify.Stripe, object(0) + object(1), "", "I4 I19"},
		"intent of other content":  {verify.Stripe, `"fingerprint":"v1:f"`, `"fingerprint":"v1:other"`, "I4"},
		"other dispute":            {verify.Stripe, `"id":"du_ID"`, `"id":"du_2"`, "I4"},
		"dispute not recorded":     {verify.Rows, `"disputeId":{"S":"du_ID"},"disputeStatus":{"S":"won"},"disputedAt":{"N":"1790000002000"},"refund#R"`, `"refund#R"`, "I4"},
		"declined though charged":  {verify.Rows, `"status":{"S":"partially_refunded"}`, `"status":{"S":"declined"}`, "I4 I7 I15 I17"},
		"left waiting":             {verify.Rows, `"status":{"S":"partially_refunded"}`, `"status":{"S":"pending"}`, "I4 I7 I17"},
		"left open":                {verify.Rows, `"status":{"S":"partially_refunded"}`, `"status":{"S":"open"}`, "I4 I5 I7 I17"},
		"corrupt row":              {verify.Rows, `"refundable":{"N":"2000"}`, `"refundable":{"N":"3000"}`, "I4"},
		"event missing":            {verify.Rows, item(0), "", "I5 I7 I8 I16"},
		"event with a wrong seq":   {verify.Rows, `"seq":{"N":"2"}`, `"seq":{"N":"4"}`, "I7 I8 I16"},
		"event twice":              {verify.Rows, "", item(0), "I7 I8 I16"},
		"invalid transition":       {verify.Rows, `"from":{"S":"open"}`, `"from":{"S":"declined"}`, "I7 I16"},
		"refund made twice":        {verify.Stripe, "", fmt.Sprintf(refund, 1000, "R"), "I18 I19"},
		"refunded too much":        {verify.Stripe, `"amount":2000`, `"amount":5000`, "I4 I19"},
		"refund without an item":   {verify.Stripe, "", fmt.Sprintf(refund, 1000, "R-2"), "I4 I19"},
		"refund called wrongly":    {verify.Stripe, `"id":"re_ID","status":"succeeded"`, `"id":"re_ID","status":"pending"`, "I20"},
		"refund event of other":    {verify.Rows, `"refundAmount":{"N":"2000"}`, `"refundAmount":{"N":"1000"}`, "I20"},
		"not published":            {verify.Events, onBus(3), "", "I16"},
		"published out of order":   {verify.Events, onBus(0), "", "I16"},
		"event of other content":   {verify.Events, `"from":"paid","status":"partially`, `"from":"open","status":"partially`, "I16"},
		"repeated with other":      {verify.Events, "", strings.Replace(onBus(0), `"open"`, `"pending"`, 1), "I16"},
		"acknowledged, no refund":  {verify.Logs, "", strings.Replace(line(4), `"R"`, `"R-9"`, 1), "I5"},
		"acknowledged as declined": {verify.Logs, "", strings.Replace(line(2), `"status":"paid"`, `"status":"declined"`, 1), "I5"},
		"settled by two":           {verify.Logs, "", strings.Replace(line(1), `"m1"`, `"m9"`, 1), "I8"},
		"conflict acknowledged":    {verify.Logs, "", strings.Replace(line(2), `"m2"`, `"m3"`, 1), "I9"},
		"conflict redelivered":     {verify.Logs, `"park"`, `"redeliver"`, "I9"},
		"a key in the log":         {verify.Logs, "", `{"order_id":"ID","error":"sk_test_pretend"}`, "I13"},
		"a card in a panic":        {verify.Logs, "", "panic: order ID: 4242 4242 4242 4242", "I13"},
	}
}

func TestEveryPlantedAnomalyIsFoundAndNoOther(t *testing.T) {
	var found []verify.Report
	dir := t.TempDir()
	f, v := folder(t, dir, &found)
	want, got := map[string]string{}, map[string]string{}
	for name, p := range plants() {
		id := strings.NewReplacer(" ", "-", ",", "").Replace(name)
		h := history()
		if p.old != "" && !strings.Contains(h[p.from], p.old) {
			t.Fatalf("%s: no %q", name, p.old)
		}
		if p.old == "" {
			h[p.from] += p.new + "\n"
		} else {
			h[p.from] = strings.Replace(h[p.from], p.old, p.new, 1)
		}
		h.of(id).read(t, f)
		want[id] = p.want
	}
	for n := range 50 {
		history().of(fmt.Sprint("clean-", n)).read(t, f)
	}
	s, err := v.Run(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		var broken []string
		for _, finding := range r.Findings {
			broken = append(broken, finding.Invariant)
		}
		id := string(r.OrderID)
		if id == "" {
			id = "a-card-in-a-panic"
		}
		got[id] = strings.Join(slices.Compact(broken), " ")
		if !strings.Contains(r.Findings[0].Detail, string(r.OrderID)) && broken[0] != "I13" || strings.Contains(fmt.Sprint(r), "canary") {
			t.Errorf("%s: %+v", id, r)
		}
		sorted := slices.IsSortedFunc(r.Timeline, func(a, b verify.Moment) int { return a.At.Compare(b.At) })
		if !sorted || broken[0] != "I13" && len(r.Timeline) < 5 {
			t.Errorf("%s: timeline %v", id, r.Timeline)
		}
	}
	for n := range 256 {
		kept, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("part-%03d.jsonl", n)))
		if err != nil || strings.Contains(string(kept), "canary") {
			t.Errorf("part %d: %v, or it keeps something personal: %s", n, err, kept)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
	if s.Orders != len(want)+50 || s.Broken != len(want)-2 {
		t.Errorf("got %+v", s)
	}
}

func TestWhatIsNotCheckedIsSaid(t *testing.T) {
	other := [2]string{`"amount_captured":4000`, `"amount_captured":5000`}
	const lease = `"status":{"S":"open"},"owner":{"S":"w"},"leaseUntil":{"N":"1790003660000"}`
	for name, tt := range map[string]struct {
		change  func(*verify.Verifier)
		edit    [2]string
		want    verify.Summary // Orders, InProgress, Expired and Broken
		checked string
	}{
		"all":             {func(*verify.Verifier) {}, other, verify.Summary{Orders: 1, Broken: 1}, "I1 I2 I4 I5 I7 I8 I9 I13 I15 I16 I17 I18 I19 I20 I21"},
		"without rows":    {func(v *verify.Verifier) { v.Have[verify.Rows] = false }, other, verify.Summary{Orders: 1}, "I1 I9 I13 I18"},
		"without Stripe":  {func(v *verify.Verifier) { v.Have[verify.Stripe] = false }, other, verify.Summary{Orders: 1}, "I5 I7 I8 I9 I13 I16 I21"},
		"changed after":   {func(v *verify.Verifier) { v.Rest = now().Add(-2 * time.Hour) }, other, verify.Summary{Orders: 1, InProgress: 1}, ""},
		"another time":    {func(v *verify.Verifier) { v.Window.To = now().Add(-2 * time.Hour) }, other, verify.Summary{}, ""},
		"events are gone": {func(v *verify.Verifier) { v.Now = now().AddDate(0, 0, 91) }, [2]string{`"sk":{"S":"event`, `"sk":{"S":"x`}, verify.Summary{Orders: 1, Expired: 1}, ""},
		"a worker has it": {func(*verify.Verifier) {}, [2]string{`"status":{"S":"partially_refunded"}`, lease}, verify.Summary{Orders: 1, InProgress: 1}, ""},
	} {
		var found []verify.Report
		f, v := folder(t, t.TempDir(), &found)
		tt.change(v)
		h := history().of("A")
		for from, text := range h {
			h[from] = strings.ReplaceAll(text, tt.edit[0], tt.edit[1])
		}
		h.read(t, f)
		s, err := v.Run(f)
		var checked []string
		for _, i := range s.Invariants {
			if i.Checked {
				checked = append(checked, i.ID)
			} else if i.Note == "" {
				t.Errorf("%s: %s is not checked without a reason", name, i.ID)
			}
		}
		got := verify.Summary{Orders: s.Orders, InProgress: s.InProgress, Expired: s.Expired, Broken: s.Broken}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || tt.checked != "" && strings.Join(checked, " ") != tt.checked {
			t.Errorf("%s: checked %v, error %v (-want +got):\n%s", name, checked, err, diff)
		}
	}
}

// highWater verifies so many orders, every hundredth without its row, and returns the
// most memory that was in use, in MiB.
func highWater(t *testing.T, orders int) (most uint64) {
	t.Helper()
	var found []verify.Report
	f, v := folder(t, t.TempDir(), &found)
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	broken, paid := 0, history().paid()
	v.Found = func(verify.Report) error { broken++; return nil }
	for n := range orders {
		h := paid.of(fmt.Sprint("ORD-", n))
		if n%100 == 0 {
			h[verify.Rows] = ""
		}
		h.read(t, f)
		if n%1000 == 0 {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64()-sample[1].Value.Uint64())
		}
	}
	s, err := v.Run(f)
	metrics.Read(sample)
	most = max(most, sample[0].Value.Uint64()-sample[1].Value.Uint64()) >> 20
	if err != nil || s.Orders != orders || broken != (orders+99)/100 {
		t.Errorf("got %+v, %v, want %d orders", s, err, orders)
	}
	t.Logf("%d orders: at most %d MiB", orders, most)
	return most
}

func TestMemoryHardlyGrowsWithTheOrders(t *testing.T) {
	few, many := highWater(t, 500), highWater(t, 5000)
	if many > few+16 {
		t.Errorf("got %d MiB for 500 orders and %d MiB for 5000", few, many)
	}
}

// TestManyHistoriesAreVerifiedInLittleMemory takes half a minute: make test-long runs it.
// Each night, ORDERONCE_ORDERS is a million, which take ten minutes.
func TestManyHistoriesAreVerifiedInLittleMemory(t *testing.T) {
	lambdatest.FullOnly(t)
	many, err := strconv.Atoi(os.Getenv("ORDERONCE_ORDERS")) //nolint:forbidigo // a test has no composition root
	limit := uint64(128)
	if err != nil {
		many, limit = 100_000, 48
	}
	for _, orders := range []int{20_000, many} {
		if most := highWater(t, orders); most > limit {
			t.Errorf("%d orders: used %d MiB, want at most %d", orders, most, limit)
		}
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	f, _ := folder(t, t.TempDir(), new([]verify.Report))
	for want, err := range map[string]error{
		"not an item":                      f.ReadRows(strings.NewReader(`{"Item":{}}`)),
		"unexpected EOF":                   f.ReadRows(strings.NewReader(`{"Item":`)),
		"not a PaymentIntent":              f.ReadStripe(strings.NewReader(`{"object":"event","id":"evt_1"}`)),
		"names no order: list it with":     f.ReadStripe(strings.NewReader(`{"object":"dispute","id":"du_1","payment_intent":"pi_1"}`)),
		"line 2: not an event of an order": f.ReadEvents(strings.NewReader("\n{}")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
