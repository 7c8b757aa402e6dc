package batch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/refund"
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
				`the header has ["Order no." "currency" "Jane\n\u009b31mDoe"]; --column customerId=NAME`,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			got, err := readCSV(strings.NewReader(tt.text), map[string]string{"orderId": "Order no."})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(Message{}, order.Order{}, refund.Request{})); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
	if _, err := readCSV(strings.NewReader(csvHeader), map[string]string{"order": "x"}); err == nil ||
		!strings.Contains(err.Error(), "--column order: want one of orderId, ") {
		t.Errorf("got %v, want that there is no such column", err)
	}
}

func TestAnAmountIsAsAPersonWritesIt(t *testing.T) {
	for text, want := range map[string]string{ // of "amount currency"
		"19.99 usd": "19.99 USD", "1999 usd": "19.99 USD", "19.9 usd": "19.90 USD", "0.05 eur": "0.05 EUR", "500 jpy": "500 JPY",
		"5.120 kwd": "5.120 KWD", "5.12 kwd": "5.120 KWD", "500.00 isk": "500.00 ISK", "50000 ugx": "500.00 UGX",
		"9.999 usd": "amount 9.999: USD has 2 decimals", "500.0 jpy": "amount 500.0: JPY has 0 decimals",
		"5.125 kwd": "amount 5.125 is 5.125 KWD: Stripe takes no such fraction",
		"150 isk":   "amount 150 is 1.50 ISK: Stripe takes no such fraction", "1,999 usd": `amount "1,999": want 19.99`,
		"19,99 eur": `amount "19,99": want`, "-5 usd": `amount "-5": want`, "1e3 usd": `amount "1e3": want`, ".5 usd": `amount ".5": want`,
	} {
		typed, currency, _ := strings.Cut(text, " ")
		var a Amount
		err := a.UnmarshalText([]byte(typed))
		m, got := order.Money{}, ""
		if err == nil {
			m, err = a.In(order.Currency(currency))
			got = m.String()
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestAFileOfRefundsIsUnambiguous(t *testing.T) {
	const header = "Order no.,amount,refundId,note\n"
	first := Refund{refund.Draft{OrderID: "A-1", RefundID: "wrong", Reason: "duplicate"}, 2, "19.99"}
	for claim, tt := range map[string]struct {
		text string
		want []Refund
		err  string
	}{
		"CSV": {text: "\ufeff" + header + "A-1, 19.99 ,,x\nA-1,1.00,R-2,\n", want: []Refund{
			first, {refund.Draft{OrderID: "A-1", RefundID: "R-2", Reason: "duplicate"}, 3, "1.00"},
		}},
		"JSON lines": {text: "{\"orderId\":\"A-1\",\"amount\":1999,\"currency\":\"usd\"}\n\n# mine\n", want: []Refund{
			{refund.Draft{OrderID: "A-1", RefundID: "wrong", Reason: "duplicate", Currency: "usd"}, 1, "1999"},
		}},
		"another field":       {text: `{"orderId":"A-1","amount":1999,"refund":"R"}`, err: `nothing posted: standard input: line 1: json: unknown field "refund"`},
		"an order":            {text: `{"orderId":"A-1","lines":[]}`, err: "nothing posted: standard input: line 1: "},
		"a refund twice":      {text: header + "A-1,1.00,,\nA-1,2.00,,\n", err: `line 3: refund "wrong" of order "A-1" is in line 2 too`},
		"20 beside 19.99":     {text: header + "A-1,19.99,,\nA-2,20,,\n", err: "line 3: amount 20: of it and that of line 2, one has a decimal point"},
		"a thousand":          {text: header + "A-1,\"1,999\",,\n", err: `line 2: amount "1,999": want 19.99`},
		"no column":           {text: "orderId,amount\nA-1,1.00\n", err: `columns missing: Order no.: the header has ["orderId" "amount"]; --column orderId=NAME renames one`},
		"a row that is short": {text: header + "A-1\n", err: "wrong number of fields"},
	} {
		source := Source{File: "-", Column: map[string]string{"orderId": "Order no."}}
		got, err := source.ReadRefunds(strings.NewReader(tt.text), refund.Draft{RefundID: "wrong", Reason: "duplicate"})
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got error %v, want %q", claim, err, tt.err)
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", claim, diff)
		}
	}
}
