package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/view"
)

// letterFixture is a deployment whose dead-letter queue has one message of each verdict
// and an invalid one. A person is at the terminal.
type letterFixture struct {
	*deployment

	queues *sqstest.Server
	before func(sqstest.Call) // each call to SQS; nil: nothing
}

func newLetterFixture(t *testing.T) *letterFixture {
	t.Helper()
	p := &letterFixture{deployment: deploy(t)}
	environ, s := serveQueues(t, sqstest.Options{Now: noon, Before: func(c sqstest.Call) {
		if p.before != nil {
			p.before(c)
		}
	}}, nil)
	p.queues, p.terminal, p.environ = s, true, append(p.environ, environ...)
	p.process(pays, "PAID")
	p.process(missing, "REFUSED")
	p.park(order.ReasonStore, bodyOf("WAITS", pays))
	p.park(order.ReasonUnknown, bodyOf("PAID", pays))
	p.park(order.ReasonRefused, bodyOf("REFUSED", missing))
	p.park(order.ReasonKeyReused, bodyOf("LOST", pays))
	p.park(order.ReasonInvalid, `{"orderId":"secret`)
	return p
}

func (p *letterFixture) park(why order.Reason, body string) {
	sendDead(p.T, p.queues, sqstest.Draft{Body: body, Attributes: map[string]sqstest.Attribute{
		sqs.AttrReason: sqstest.Text(string(why)), "buyer": sqstest.Text("Jane Doe"),
		sqs.AttrFirstSent: sqstest.Text(noon().Add(-150 * time.Hour).Format(time.RFC3339)),
		"photo":           {Type: "Binary", Binary: []byte{1, 2}},
	}})
}

// orders returns the orders that a queue has messages of, "?" for an invalid one.
func (p *letterFixture) orders(queue string) (all []string) {
	for _, m := range messagesOf(p.T, p.queues, queue) {
		id := "?"
		if o, err := orders.NewDecoder().Decode(m.Body); err == nil {
			id = string(o.ID())
		}
		all = append(all, id)
	}
	return all
}

// The page of sessions shows a list.
func TestDeadLettersAreSelected(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	const list, jsonList = "dead-letters list", "--json dead-letters list"
	p.steps(
		step{line: list, want: "redrive  WAITS  store_unavailable  not charged\n, first sent 6d ago, parked once, received once\n" +
			"discard  PAID  provider_unknown  charged and settled\nfix      REFUSED  refused  not charged\n" +
			"look     LOST  key_reused  unknown\nfix      no order  invalid_order  not charged\n" +
			"         message body: truncated JSON\n5 messages: 1 redrive, 1 discard, 2 fix, 1 look"},
		step{line: jsonList + " --verdict discard", want: `"orderId":"PAID"` + "\n5 messages"},
		step{line: list + " --reason refused,key_reused", want: "REFUSED\nLOST\n2 messages: 1 fix, 1 look; not selected: 3"},
		step{line: list + " --order WAITS", want: "WAITS\n1 message: 1 redrive; not selected: 4"},
		step{line: list + " --field payment.method=" + missing, want: "REFUSED\n1 message: 1 fix; not selected: 4"},
		step{line: list + " --field payment.method=" + missing + " --field orderId=PAID", want: "0 messages; not selected: 5"},
		step{line: list + " --field customer=cus_1", code: 1, want: "--field customer: no message that was looked at has a field"},
		step{line: list + " --older-than 151h", want: "0 messages; not selected: 5"},
		step{line: list + " --newer-than 150h", want: "0 messages; not selected: 5"},
		step{line: list + " --older-than 1h --newer-than 151h --reason key_reused", want: "LOST\n1 message: 1 look; not selected: 4"},
		step{
			line: "dead-letters show 0af76519-16cd-43dd-8448-eb211c80319c", claim: "by its first id", want: "look     UNNAMED  none",
			before: func() {
				sendDead(t, p.queues, sqstest.Draft{Body: bodyOf("UNNAMED", pays), Attributes: map[string]sqstest.Attribute{
					sqs.AttrFirstMessageID: sqstest.Text("0af76519-16cd-43dd-8448-eb211c80319c"),
				}})
			},
		},
		step{line: "dead-letters show 00000000-0000-4000-8000-000000000002", claim: "by its id", want: "discard  PAID"},
		step{line: list + " --reason none", want: "UNNAMED\n1 message: 1 look; not selected: 5"},
		step{
			line: "dead-letters discard --reason none --dry-run --force", claim: "of the order queue", code: 2,
			want:   "order queue http\nlook     UNNAMED\nin the order queue, it waits\n",
			before: func() { p.environ = append(p.environ, "QUEUE_URL="+p.queues.QueueURL("dead")) },
		},
		step{line: list + " --limit 1", want: "1 message: 1 redrive\nthe limit was reached, and SQS counts about 5 more: see --limit"},
		step{
			line: list, claim: "the SDK repeats a lost receive, and gets nothing: the first one hid the messages",
			before: func() { p.queues.Lose("ReceiveMessage", 1) },
			want: "\n0 messages\nSQS counts about 6 more: hidden by another reader or by a response that was lost, " +
				"or gone a moment ago; run this again in 5m0s",
		},
		step{
			line: "dead-letters discard --yes --reason none", claim: "what is not seen is left", code: 2,
			want: "\n0 messages\nSQS counts about 6 more: hidden by another reader\nleft: 0\nSQS counts about 6 more",
		},
	)
}

// With thousands of messages, each on four lines, nobody sees the first.
func TestAListIsAPageAndCountsTheRest(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	for n := range 60 {
		p.park(order.ReasonStore, bodyOf(order.ID(fmt.Sprint("OTHER-", n)), pays))
	}
	p.steps(step{
		line: "dead-letters list", want: "65 messages: 46 redrive, 1 discard, 2 fix, 1 look, 15 without a verdict\n" +
			"      46  store_unavailable          redrive\n      15  store_unavailable          without a verdict\n" +
			"       1  invalid_order              fix\nprinted are the first 50",
	})
	for line, want := range map[string]int{
		"dead-letters list": 50, "dead-letters list --all": 65, "--json dead-letters list": 65,
		"dead-letters redrive --dry-run": 50, "dead-letters redrive --dry-run --all": 61,
	} {
		p.terminal = false
		printed, _ := p.runs(step{line: line})
		if got := strings.Count(printed, "message 0") + strings.Count(printed, `{"messageId"`); got != want {
			t.Errorf("orders %s: printed %d messages, want %d", line, got, want)
		}
	}
	behind := triage{Deployment: cloud.Deployment{Env: cloud.Env{DeadLetters: "dead.fifo"}}}
	got := behind.unseen(deadletters.Pages{Ended: true, Unseen: 15})
	if !strings.Contains(got, "15 more: behind the first ten of their message group") {
		t.Errorf("got %q, want why they cannot be seen", got)
	}
}

// A release that was rolled back leaves producers that send what the older one refuses.
// It may have charged one of two messages of an order.
func TestAMessageOfANewerReleaseIsKept(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	p.park(order.ReasonInvalid, strings.Replace(bodyOf("NEWER", pays), "{", `{"tax":500,`, 1))
	p.park(order.ReasonInvalid, strings.Replace(bodyOf("PAID", pays), "{", `{"tax":500,`, 1))
	p.park(order.ReasonInvalid, `{"type":"credit","orderId":"PAID"}`)
	p.park(order.ReasonInvalid, strings.Replace(bodyOf("TYPO", pays), "customerId", "customerID", 1))
	const keep = "\n         keep this if a newer release knows it: roll forward"
	const newer, list = "message body: unknown field \"tax\"" + keep, "dead-letters list --reason invalid_order --order "
	p.steps(
		step{line: list + "NEWER", want: "fix      NEWER  invalid_order  not charged\n" + newer, lacks: "discard"},
		step{
			line: list + "PAID",
			want: "PAID  invalid_order  charged and settled\n" + newer +
				"\nPAID  invalid_order  unknown\ntype: want" + keep,
		},
		step{line: "dead-letters show NEWER", want: newer + "\n[body withheld\nrow        load order"},
		step{line: list + "TYPO", want: "TYPO  invalid_order  not charged\nwant \"customerId\"\ncorrect the producer"},
		step{
			line: "dead-letters discard --order NEWER --force", code: 2,
			want: "kept     NEWER  a newer release may read it: add --save FILE\ndiscarded: 0 messages, left: 1\n",
		},
	)
}

// A message that another reader takes while the person thinks is not redriven silently.
func TestWhatIsTakenMeanwhileIsSaid(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	p.before = func(c sqstest.Call) {
		if c.Operation == "GetQueueAttributes" { // all was listed, and is about to be put back
			p.before = func(c sqstest.Call) {
				if c.Operation == "ReceiveMessage" {
					p.before = nil
					p.queues.Machine(func(m *sqstest.Machine, now time.Time) {
						_, err := m.Receive(now, "dead", 1, nil)
						must(t, err)
					})
				}
			}
		}
	}
	p.steps(step{
		line: "dead-letters redrive --yes", code: 2,
		want: "redriven: 0 messages, left: 5, of which 1 were not seen again: hidden or taken by another reader",
	})
}

// A producer's attributes reach the dead-letter queue when SQS moves the message. They
// may be personal data, and write nothing on the terminal.
func TestShowPrintsAMessageWithoutItsPayer(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	const strange = "Jane Doe\nredrive  ORD-2\u009b31m\u202e"
	const personal = "Jane\n" + pays + "\nORD-2\n\u009b\n\u202e"
	attributes := map[string]sqstest.Attribute{"mine": sqstest.Text(strange), sqs.AttrTrace: sqstest.Text(strange)}
	for _, name := range []string{"reason", "detail", "order-id", "first-message-id", "first-sent", "times-parked", "dropped"} {
		attributes["orderonce-"+name] = sqstest.Text(strange)
	}
	sendDead(t, p.queues, sqstest.Draft{Body: bodyOf("STRANGE", pays), Attributes: attributes})
	for n := range 25 { // a message may be behind many others
		p.park(order.ReasonStore, bodyOf(order.ID(fmt.Sprint("OTHER-", n)), pays))
	}
	p.steps(
		step{
			line: "dead-letters show PAID", lacks: personal, want: "discard  PAID  provider_unknown\n  buyer: [withheld: length 8, with ' ']\n" +
				"  photo: [2 bytes]\n\"customerId\":\"[withheld]\"\n\"sku\":\"MUG\"\nstatus     paid",
		},
		step{line: "dead-letters show PAID", want: "orderonce-reason: provider_unknown"},
		step{line: "dead-letters show PAID --body", want: "Jane Doe\ncus_pretend"},
		step{line: "dead-letters show STRANGE --body", want: `mine: Jane Doe\nredrive  ORD-2\u009b31m\u202e`},
		step{line: "dead-letters show OTHER-24", want: "redrive  OTHER-24  store_unavailable"},
		step{line: "dead-letters show NONE", code: 1, want: `show "NONE": the dead-letter queue has no such message`},
		step{line: "dead-letters list", want: "PAID\nSTRANGE", lacks: personal},
		step{line: "dead-letters show STRANGE", want: "STRANGE", lacks: personal},
	)
}

func TestShowPrintsTheFacts(t *testing.T) {
	t.Parallel()
	usd := order.Money{Amount: 1000, Currency: "usd"}
	l := deadletters.Letter{Facts: deadletters.Facts{
		RowErr:  order.ErrNotFound,
		Intents: []order.Intent{{ID: "pi_1", State: order.Processing, Total: usd}}, StripeErr: errors.New("status 500"),
		Made: []refund.Refund{{ID: "re_1", Status: refund.Pending, Total: usd}},
	}}
	want := "row        " + order.ErrNotFound.Error() + "\nat Stripe  pi_1 processing, 10.00 USD\n" +
		"at Stripe  re_1 pending, 10.00 USD\nat Stripe  status 500"
	if diff := cmp.Diff(view.DescribeFacts(l), want); diff != "" {
		t.Errorf("facts (-got +want):\n%s", diff)
	}
	l = deadletters.Letter{Message: deadletters.Message{Body: `{"orderId":"secret`, Invalid: errors.New("truncated")}}
	text, _ := view.WholeLetter(l, noon(), false)
	if strings.Contains(text, "secret") || !strings.Contains(text, "[body withheld: 18 bytes; --body prints it]") {
		t.Errorf("an invalid body: printed\n%s\nwant it withheld", text)
	}
	l.Detail = strings.Repeat("x", 200)
	if text := view.Letter(l, noon()); !strings.Contains(text, strings.Repeat("x", 160)+"...\n") {
		t.Errorf("printed\n%s\nwant a mark where the detail is cut", text)
	}
	l.Detail = "the function's own words"
	if text := view.Letter(l, noon()); !strings.Contains(text, l.Detail) || strings.Contains(text, "truncated") {
		t.Errorf("printed\n%s\nwant why the function parked it", text)
	}
}

// A script stops at exit code 2, because messages are left, or may be.
func TestRedriveAndDiscard(t *testing.T) {
	t.Parallel()
	const redrive, discard = "dead-letters redrive --rate 1000", "dead-letters discard"
	whole := []string{"WAITS", "PAID", "REFUSED", "LOST", "?"}
	for claim, tt := range map[string]struct {
		step

		pipe           bool // standard output is not a terminal
		dead, redriven []string
	}{
		"redrive after another word": {step: step{line: redrive, typed: "yes\n", code: 1, want: "nothing was changed"}, dead: whole},
		"redrive of a fixed cause": {
			step: step{line: redrive + " --verdict fix", typed: "redrive\n", code: 2},
			dead: []string{"WAITS", "PAID", "LOST"}, redriven: []string{"REFUSED", "?"},
		},
		"redrive of all asks scripts too": {
			step: step{line: redrive + " --verdict any --yes", code: 1, want: "nothing was changed"}, dead: whole,
		},
		"redrive of all": {
			step:     step{line: redrive + " --verdict any --yes", typed: "redrive\n", want: "redriven: 5 messages, left: 0; list again"},
			redriven: whole,
		},
		"redrive on a pipe changes nothing": {
			step: step{line: redrive, code: 2, want: "dry run: 1 message would be redriven\n"}, pipe: true, dead: whole,
		},
		"redrive in a script": {
			step: step{line: redrive + " --yes", code: 2, want: "Stripe in test mode\nredriven: 1 message, left: 4; list again in a minute: "},
			pipe: true, dead: whole[1:], redriven: whole[:1],
		},
		"a dry run of redrive": {
			step: step{line: redrive + " --dry-run --yes", code: 2, want: "dry run: 1 message would be redriven\n"}, dead: whole,
		},
		"discard of what is left to no one": {
			step: step{line: discard + " --yes", code: 2, want: "discarded: 1 message, left: 4\n"},
			dead: []string{"WAITS", "REFUSED", "LOST", "?"},
		},
		"discard of all asks scripts too": {
			step: step{line: discard + " --force --yes", code: 1, want: "nothing was changed"}, dead: whole,
		},
		"discard on a pipe": {step: step{line: discard + " --force", typed: "discard\n", code: 2}, pipe: true, dead: whole},
		"as many as the limit": {
			step: step{
				line: discard + " --yes --reason none --limit 5", code: 2,
				want: "left: 0\nthe limit was reached, and SQS counts about 0 more",
			},
			dead: whole,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newLetterFixture(t)
			p.terminal = !tt.pipe
			p.steps(tt.step)
			if diff := cmp.Diff(p.orders("dead"), tt.dead); diff != "" {
				t.Errorf("dead letters (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(p.orders("orders"), tt.redriven); diff != "" {
				t.Errorf("redriven (-got +want):\n%s", diff)
			}
		})
	}
}

func TestADecisionIsMadeAgainWhenTheMessageIsTaken(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	p.process(pays, "LATE")
	p.before = func(c sqstest.Call) { // when the listed messages are put back
		if c.Operation == "ChangeMessageVisibilityBatch" {
			p.before = nil
			p.edit("PAID", dynamodb.Item{"status": dynamodb.Text("declined")})
			p.park(order.ReasonUnknown, bodyOf("LATE", pays)) // nobody saw it in the list
			p.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.Read, Times: -1})
		}
	}
	p.steps(step{line: "dead-letters discard --yes", code: 2, want: "discard  PAID\nlook     PAID\ndiscarded: 0 messages, left: 5"})
}

// An attempt whose Confirm was lost may still charge a refused order at Stripe: if its
// message were gone and a corrected order posted, the customer would pay twice.
func TestDiscardKeepsAnOrderThatMayBeChargedUntilItIsCanceled(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	p.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, On: stripetest.Confirm})
	p.process(pays, "LOST")
	p.edit("LOST", dynamodb.Item{"status": dynamodb.Text("refused")})
	p.steps(step{
		line: "dead-letters discard --force", typed: "discard\n", code: 2,
		want: "kept     REFUSED  it stays refused, and another message may charge it: orders cancel REFUSED, then discard\n" +
			"kept     LOST  pi_\n may still be charged: orders cancel LOST, then discard\ndiscarded: 3 messages, left: 2",
	})
	if diff := cmp.Diff(p.orders("dead"), []string{"REFUSED", "LOST"}); diff != "" {
		t.Errorf("dead letters (-got +want):\n%s", diff)
	}
	p.steps(
		step{line: "cancel LOST --yes", want: "canceled: it was refused"},
		step{line: "cancel REFUSED --yes", want: "canceled: it was refused"},
		step{line: "dead-letters discard --yes", want: "discarded: 2 messages, left: 0"},
	)
}

// A message that was posted again without its age would look younger than a row that
// replaced a lost one.
func TestDiscardSavesAMessageBeforeItDeletesIt(t *testing.T) {
	t.Parallel()
	p := newLetterFixture(t)
	file := filepath.Join(t.TempDir(), "saved.jsonl")
	again := func() { p.park(order.ReasonUnknown, bodyOf("PAID", pays)) }
	p.steps(
		step{line: "dead-letters discard --yes --save " + file, code: 2, want: "discarded: 1 message"},
		step{line: "dead-letters discard --yes --save " + file, code: 2, want: "discarded: 1 message", before: again},
		step{line: "dead-letters discard --yes --save " + file + "/none", code: 1, want: "not a directory", before: again},
	)
	if left := p.orders("dead"); len(left) != 5 {
		t.Errorf("%q are left, want the message that could not be saved among them", left)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, %v, want a file that nobody else reads", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	must(t, err)
	saved := 0
	for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); saved++ {
		var got batch.Saved
		must(t, lines.Decode(&got))
		if got.Body != bodyOf("PAID", pays) || got.Reason != "provider_unknown" ||
			!bytes.Equal(got.Attributes["photo"].BinaryValue, []byte{1, 2}) || *got.Attributes["buyer"].StringValue != "Jane Doe" ||
			!got.FirstSent.Equal(noon().Add(-150*time.Hour).Truncate(time.Second)) {
			t.Errorf("saved %s\nwant the message whole", text)
		}
	}
	if saved != 2 {
		t.Errorf("saved %d messages, want both:\n%s", saved, text)
	}
	p.steps(step{line: "post --yes " + file, want: "messages posted: 2"})
	for _, m := range messagesOf(t, p.queues, "orders") {
		sent := m.Attributes[sqs.AttrFirstSent].Text
		if want := noon().Add(-150 * time.Hour).Format(time.RFC3339); m.Body != bodyOf("PAID", pays) || len(m.Attributes) != 1 || sent != want {
			t.Errorf("posted %+v, want the order as it was first sent at %s", m, want)
		}
	}
}
