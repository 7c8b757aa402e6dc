package batch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const csvHeader = "Order no.,customerId,currency,sku,quantity,unitAmount,payment.customer,payment.method,note\n"

func TestPostReadsCSV(t *testing.T) {
	const one = `{"orderId":"A-1","customerId":"me","currency":"usd","lines":[{"sku":"BOOK","quantity":1,"unitAmount":2400},` +
		`{"sku":"PEN, red","quantity":2,"unitAmount":100}],"payment":{"customer":"cus_1","method":"pm_1"}}`
	const other = `{"orderId":"A-2","customerId":"me","currency":"eur","lines":[{"sku":"PEN","quantity":3,"unitAmount":100}],` +
		`"payment":{"customer":"cus_1","method":"pm_1"}}`
	for claim, tt := range map[string]struct {
		text string
		want []Message
		err  string
	}{
		"rows of one order are its lines": {
			text: csvHeader + "A-1,me,usd,BOOK,1,2400,cus_1,pm_1,\n" + `A-1,me,usd,"PEN, red",2,100,cus_1,pm_1,x` + "\n" +
				"A-2,me,eur, PEN ,3,100,cus_1,pm_1,\n",
			want: []Message{{line: 2, body: one}, {line: 4, body: other}},
		},
		"an empty file":  {},
		"a header alone": {text: csvHeader},
		"another payment": {
			text: csvHeader + "A-1,me,usd,B,1,1,cus_1,pm_1,\nA-1,me,usd,P,2,1,cus_1,pm_2,\n",
			err:  `line 3: order "A-1": customer, currency or payment is not that of line 2`,
		},
		"a decimal":   {text: csvHeader + "A-1,me,usd,B,1,24.00,cus_1,pm_1,\n", err: `line 2: unitAmount "24.00": want an integer`},
		"a short row": {text: csvHeader + "A-1,me\n", err: "wrong number of fields"},
		"a missing column": {
			text: "Order no.,currency,\"Jane\n\u009b31mDoe\"\n",
			err: "line 1: columns missing: customerId, sku, quantity, unitAmount, payment.customer, payment.method: " +
				`the header has ["Order no." "currency" "Jane\n\u009b31mDoe"]; --column`,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			got, err := readCSV(strings.NewReader(tt.text), map[string]string{"orderId": "Order no."})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(Message{})); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
	if _, err := readCSV(strings.NewReader(csvHeader), map[string]string{"order": "x"}); err == nil ||
		!strings.Contains(err.Error(), "--column order: want one of orderId, ") {
		t.Errorf("got %v, want that there is no such column", err)
	}
}
