package main

import (
	"testing"
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/jobs"
)

// The same command says what it would do, does it, and says what came of it.
func TestRefundBatch(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	queue := d.queueRefunds(nil)
	d.process(pays, "PAID", "PARTLY", "OVER", "EURO", "OTHER", "AGAIN", "TWICE", "CORRUPT", "ROUND")
	d.process(takes, "PENDING")
	d.refund("PARTLY", noon) // R-1 of 10.00 USD
	d.refund("OTHER", noon)
	d.refund("AGAIN", noon)
	d.another("TWICE", string(scope), true)
	d.edit("CORRUPT", dynamodb.Item{"fingerprint": nil})
	d.stripe.Advance(2 * time.Minute)
	wrong := "refund batch --refund-id wrong-price " + d.file("\ufefforderId,note,amount,refundId,currency",
		"PAID,,9.98,,USD", "PARTLY,,29.98,,", "OVER,,39.99,,", "EURO,,1.00,,eur", "OTHER,,11.00,R-1,", "PAID,,30.01,second,", "AGAIN,,10.00,,",
		"TWICE,,10.00,,", "CORRUPT,,1.00,,", "PENDING,,39.98,,", "NONE,,1.00,,", "no id,,1.00,,", "ROUND,,9.999,,")
	const skipped = "skip    OVER wrong-price\n 39.99 USD  refund of 39.99 USD exceeds the 39.98 USD that is left\n" +
		"skip    EURO wrong-price\n 1.00 USD  \ncurrency \"eur\": want usd, as the order\n" +
		"skip    OTHER R-1\n 11.00 USD  refund id already used with another amount or reason\n" +
		"skip    PAID second\n 30.01 USD  refund of 30.01 USD exceeds the 30.00 USD that is left\n" +
		"skip    AGAIN wrong-price\n 10.00 USD  refund R-1 of this amount is succeeded: a row for another one needs a refundId\n" +
		"skip    TWICE wrong-price\n 10.00 USD  charged twice: see orders show TWICE\n" +
		"skip    CORRUPT wrong-price\n -  corrupt record\n" +
		"skip    PENDING wrong-price\n 39.98 USD  order is pending: nothing can be refunded\n" +
		"skip    NONE wrong-price\n -  order not found\n" + "skip    no id wrong-price\n -  order not found\n" +
		"skip    ROUND wrong-price\n -  amount 9.999: USD has 2 decimals\n"
	const asks = "refund  PAID wrong-price\n 9.98 USD  of 39.98 USD left\nrefund  PARTLY wrong-price\n 29.98 USD  of 29.98 USD left, 10.00 USD went back before\n" +
		skipped + "refund \n 2  39.96 USD\nskip\n 11  \n"
	arrive := func(later time.Duration) {
		for _, m := range messagesOf(t, queue, "refunds") {
			job, err := jobs.NewDecoder().Decode(m.Body)
			must(t, err)
			d.makes(job.Refund, func() time.Time { return noon().Add(later) })
		}
	}
	heal := d.atStripe(func(m *stripetest.Machine, _ time.Time) error { m.Heal(); return nil })
	unavailable := func() {
		d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Search, Times: -1})
	}
	d.steps(
		step{
			line: wrong, claim: "Stripe is down", before: unavailable, typed: "2\n", code: 1,
			want: "nothing posted: read the payments of order \"PAID\" at Stripe",
		},
		step{
			line: wrong, claim: "another number", before: heal,
			typed: "3\n", want: asks + "Type 2 to post them: 3\nnothing was changed", code: 1,
		},
		step{line: wrong + " --dry-run", want: asks + "refunds not posted: 2", code: 2},
		step{
			line: wrong + " --dry-run", claim: "without a key", environ: "STRIPE_SECRET_KEY=", code: 2,
			want: "Stripe was not read, \nrefund  TWICE wrong-price\n 10.00 USD  of 39.98 USD left",
		},
		step{line: wrong, typed: "2\n", want: "posted: 2. To see which are made, run it again\nnor posted: 11, see above", code: 2},
		step{
			line: wrong, claim: "one is made, and Stripe did not answer about the other", code: 2, before: func() {
				d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.CreateRefund})
				arrive(0)
			},
			want: "made    PARTLY wrong-price\n 29.98 USD  succeeded, re_\nwait    PAID wrong-price\n 9.98 USD  open, \n" +
				skipped + "made\n 1  29.98 USD\nwait\n 1  9.98 USD\nskip\n 11  \nneither made nor posted: 12, see above",
		},
		step{
			line: wrong + " --yes", later: 26 * time.Hour, claim: "its message is gone", code: 2,
			want: "made    PARTLY wrong-price\nrefund  PAID wrong-price\n 9.98 USD  of 30.00 USD left\nposted: 1.",
		},
		step{
			line: "--json refund batch --refund-id wrong-price " + d.file(`{"orderId":"PAID","amount":998}`,
				`{"orderId":"OTHER","amount":1000,"refundId":"R-1","reason":"duplicate"}`), claim: "all are made, as JSON",
			before: func() { arrive(26 * time.Hour) },
			want: `{"action":"made","orderId":"PAID","refundId":"wrong-price","amount":998,"currency":"usd","why":"succeeded, re_` +
				"\n" + `{"action":"made","orderId":"OTHER","refundId":"R-1",` + "\n" + `{"amounts":{"made":{"usd":1998}},"rows":{"made":2}}`,
		},
	)
}
