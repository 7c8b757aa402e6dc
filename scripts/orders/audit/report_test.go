package audit_test

import (
	"iter"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

func findings(all ...audit.Finding) iter.Seq2[audit.Finding, error] {
	return func(yield func(audit.Finding, error) bool) {
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func finding(id order.ID, c audit.Class, bind bool) audit.Finding {
	return audit.Finding{OrderID: id, Class: c, Intent: "pi_1", Detail: `row <b>"paid"</b>`, Bind: bind}
}

func TestCSVHasEveryFinding(t *testing.T) {
	var out strings.Builder
	err := audit.WriteCSV(&out, findings(finding("ORD-1", audit.TwoCharges, false)))
	want := "order_id,class,payment_intent,detail,remedy\n" +
		`ORD-1,two_charges,pi_1,"row <b>""paid""</b>",the customer paid twice: refund the one that the row does not name` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestThePageHasAChartAndEscapesWhatItShows(t *testing.T) {
	var many []audit.Finding
	for range 1001 {
		many = append(many, finding("ORD-1", audit.MissingRow, true))
	}
	for claim, tt := range map[string]struct {
		counts   map[audit.Class]int
		findings []audit.Finding
		want     []string
	}{
		"without findings": {nil, nil, []string{"Both sides agree."}},
		"with two classes": {
			map[audit.Class]int{audit.MissingRow: 1, audit.TwoCharges: 4},
			[]audit.Finding{finding("ORD-1", audit.MissingRow, true)},
			[]string{
				"<svg", `width="60%" height="18" fill="#e45756"`, `width="15%" height="18" fill="#4c78a8"`,
				"row &lt;b&gt;&#34;paid&#34;&lt;/b&gt;", "And 4 more",
			},
		},
		"with more than a browser likes": {map[audit.Class]int{audit.MissingRow: 1001}, many, []string{"And 1 more"}},
	} {
		var out strings.Builder
		if err := audit.WriteHTML(&out, job(), audit.Summary{Findings: tt.counts}, findings(tt.findings...)); err != nil {
			t.Errorf("%s: %v", claim, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got\n%s\nwant %q in it", claim, &out, want)
			}
		}
	}
}

func TestAPlanLeavesOrdersThatNeedJudgement(t *testing.T) {
	var got []string
	for p, err := range audit.Plans(findings(
		finding("A", audit.MissingRow, true), finding("B", audit.TwoCharges, false),
		finding("C", audit.RowOlder, false), finding("D", audit.RefundsDiffer, false),
		finding("D", audit.DisputeUnrecorded, false), finding("D", audit.RefundUnknown, false), finding("E", audit.RowOlder, true),
		finding("F", audit.RefundsDiffer, false), finding("F", audit.StatusContradicts, false),
	)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.String())
	}
	want := []string{
		"A  write the row, bind pi_1 and settle it", "C  settle it", "D  record its refunds, record its dispute",
		"E  bind pi_1 and settle it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
}

func TestTheGuideExplainsEveryClass(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(\\w+_\\w+)` \\|").FindAllStringSubmatch(string(guide), -1) {
		got = append(got, match[1])
	}
	for _, c := range audit.Classes() {
		want = append(want, string(c))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-code +guide):\n%s", diff)
	}
}
