package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// pile is a dead-letter queue with one message of each verdict and an invalid one. Its
// rows and its bank are in memory.
type pile struct {
	desk

	server *sqstest.Server
	store  *ordertest.Memory
	out    *strings.Builder
}

func newPile(t *testing.T, typed string) *pile {
	t.Helper()
	p := &pile{store: new(ordertest.Memory), out: new(strings.Builder)}
	bank := &ordertest.Bank{Scope: scope}
	process(t, p.store, bank, "PAID", "pm_card_visa")
	process(t, p.store, bank, "REFUSED", "pm_missing")

	s, err := sqstest.Serve(sqstest.Options{Now: noon})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	p.server = s
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		must(t, m.Create(now, "orders", sqstest.DefaultSettings()))
		must(t, m.Create(now, "dead", sqstest.DefaultSettings()))
	})
	p.park(t, order.ReasonStore, lineOfOrder("WAITS", "pm_card_visa"))
	p.park(t, order.ReasonUnknown, lineOfOrder("PAID", "pm_card_visa"))
	p.park(t, order.ReasonRefused, lineOfOrder("REFUSED", "pm_missing"))
	p.park(t, order.ReasonKeyReused, lineOfOrder("LOST", "pm_card_visa"))
	p.park(t, order.ReasonInvalid, `{"orderId":"secret`)

	p.desk = desk{
		Shell: testShell(nil, typed, p.out),
		env:   cloud.DeadLettersEnv{Stripe: cloud.StripeEnv{Key: config.NewSecret(pretendKey)}},
		queue: deadletters.NewQueue(awsOf(t, s.URL), s.QueueURL("dead"), s.QueueURL("orders"), noon, 0),
		sources: deadletters.Sources{
			Orders: p.store, Accounts: refundtest.NewMemory(p.store), Payments: bank,
			Refunds: &refundtest.Bank{Intents: bank, Now: noon}, Scope: scope,
		},
	}
	p.Terminal = true
	return p
}

// lineOfOrder returns the message of the order that process processes.
func lineOfOrder(id order.ID, method string) string {
	d := ordertest.Draft(id)
	body, _ := json.Marshal(map[string]any{
		"orderId": d.ID, "customerId": d.CustomerID, "currency": d.Currency, "lines": []map[string]any{
			{"sku": d.Lines[0].SKU, "quantity": d.Lines[0].Quantity, "unitAmount": d.Lines[0].UnitAmount},
			{"sku": d.Lines[1].SKU, "quantity": d.Lines[1].Quantity, "unitAmount": d.Lines[1].UnitAmount},
		},
		"payment": map[string]string{"customer": d.Payment.Customer, "method": method},
	})
	return string(body)
}

func (p *pile) park(t *testing.T, why order.Reason, body string) {
	t.Helper()
	p.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Send(now, "dead", sqstest.Draft{Body: body, Attributes: map[string]sqstest.Attribute{
			sqs.AttrReason: sqstest.Text(string(why)), sqs.AttrFirstSent: sqstest.Text(now.Add(-150 * time.Hour).Format(time.RFC3339)),
			"buyer": sqstest.Text("Jane Doe"), "photo": {Type: "Binary", Binary: []byte{1, 2}},
		}})
		must(t, err)
	})
}

// orders returns the orders that a queue has messages of, "?" for an invalid one.
func (p *pile) orders(queue string) (all []string) {
	p.server.Machine(func(m *sqstest.Machine, now time.Time) {
		messages, _ := m.Messages(now, queue)
		for _, one := range messages {
			o, err := orders.NewDecoder().Decode(one.Body)
			if err != nil {
				all = append(all, "?")
				continue
			}
			all = append(all, string(o.ID()))
		}
	})
	return all
}

func TestListPrintsEachVerdict(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	must(t, listDead{Select: selection{Limit: 100}, Verdict: "any"}.list(t.Context(), p.desk))
	for _, want := range []string{
		"redrive  WAITS  store_unavailable  not charged\n         nothing is charged or given back twice",
		"discard  PAID  provider_unknown  charged and settled\n         the order is paid: another delivery changes nothing\n",
		"fix      REFUSED  refused  not charged\n         correct the cause, then redrive with --verdict=fix",
		"look     LOST  key_reused  unknown\n",
		"fix      no order  invalid_order  not charged\n" +
			"         message body: truncated JSON\n         correct the producer and post the order again",
		", first sent 6d ago, parked once, received once\n",
		"\n5 messages: 1 redrive, 1 discard, 2 fix, 1 look\n",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", p.out, want)
		}
	}
}

// The SDK repeats the receive, and gets nothing: the first one hid the messages.
func TestListCountsTheMessagesOfALostResponse(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	p.server.Lose("ReceiveMessage", 1)
	must(t, listDead{Select: selection{Limit: 100}, Verdict: "any"}.list(t.Context(), p.desk))
	want := "\n0 messages\nSQS counts about 5 more: hidden by another reader or by a response that was lost, " +
		"behind others of their FIFO group, or gone a moment ago; list again in 5m0s\n"
	if got := p.out.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func field(t *testing.T, text string) (f deadletters.Field) {
	t.Helper()
	must(t, f.UnmarshalText([]byte(text)))
	return f
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		list    listDead
		printed []string // order ids
	}{
		"by verdict": {listDead{Verdict: "discard"}, []string{"PAID"}},
		"by reason": {
			listDead{Verdict: "any", Select: selection{Reason: []string{"refused", "key_reused"}}}, []string{"REFUSED", "LOST"},
		},
		"by order": {listDead{Verdict: "any", Select: selection{Order: "WAITS"}}, []string{"WAITS"}},
		"by a field": {
			listDead{Verdict: "any", Select: selection{Field: []deadletters.Field{field(t, "payment.method=pm_missing")}}},
			[]string{"REFUSED"},
		},
		"by two fields": {
			listDead{Verdict: "any", Select: selection{
				Field: []deadletters.Field{field(t, "payment.method=pm_missing"), field(t, "orderId=PAID")},
			}}, nil,
		},
		"by reason and verdict": {listDead{Verdict: "look", Select: selection{Reason: []string{"refused"}}}, nil},
		"what is older than":    {listDead{Verdict: "any", Select: selection{OlderThan: 151 * time.Hour}}, nil},
		"what is newer than":    {listDead{Verdict: "any", Select: selection{NewerThan: 150 * time.Hour}}, nil},
		"what is between": {
			listDead{Verdict: "look", Select: selection{OlderThan: time.Hour, NewerThan: 151 * time.Hour}}, []string{"LOST"},
		},
		"nothing beyond a limit": {listDead{Verdict: "any", Select: selection{Limit: 1}}, []string{"WAITS"}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newPile(t, "")
			p.JSON = true
			if tt.list.Select.Limit == 0 {
				tt.list.Select.Limit = 100
			}
			must(t, tt.list.list(t.Context(), p.desk))
			var got []string
			for lines := json.NewDecoder(strings.NewReader(p.out.String())); lines.More(); {
				var line view.LetterJSON
				must(t, lines.Decode(&line))
				got = append(got, string(line.OrderID))
			}
			if diff := cmp.Diff(got, tt.printed); diff != "" {
				t.Errorf("printed (-got +want):\n%s", diff)
			}
		})
	}
}

func TestShowPrintsAMessageWithoutItsPayer(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	must(t, showDead{ID: "PAID"}.show(t.Context(), p.desk))
	for _, want := range []string{
		"discard  PAID  provider_unknown", "orderonce-reason: provider_unknown\n", "buyer: [withheld: length 8, with ' ']", "photo: [2 bytes]",
		`"customerId":"[withheld]"`, `"sku":"MUG"`, "\nstatus     paid\n",
	} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", p.out, want)
		}
	}
	for _, personal := range []string{"cus_pretend", "pm_card_visa", "CUST987", "Jane Doe"} {
		if strings.Contains(p.out.String(), personal) {
			t.Errorf("printed\n%s\nwant no %q in it", p.out, personal)
		}
	}
	must(t, showDead{ID: "PAID", Body: true}.show(t.Context(), p.desk))
	if got := p.out.String(); !strings.Contains(got, "cus_pretend") || !strings.Contains(got, "Jane Doe") {
		t.Errorf("with --body printed\n%s\nwant it whole", got)
	}
	if err := (showDead{ID: "NONE"}).show(t.Context(), p.desk); !errors.Is(err, errNoDeadLetter) {
		t.Errorf("got error %v, want %v", err, errNoDeadLetter)
	}
}

// A producer's attributes reach the dead-letter queue when SQS moves the message.
func TestAProducerWritesNothingOnTheTerminal(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	const strange = "Jane Doe\nredrive  ORD-2\u009b31m\u202e"
	attributes := map[string]sqstest.Attribute{"mine": sqstest.Text(strange)}
	for _, name := range []string{"reason", "detail", "order-id", "first-message-id", "first-sent", "times-parked", "dropped"} {
		attributes["orderonce-"+name] = sqstest.Text(strange)
	}
	attributes[sqs.AttrTrace] = sqstest.Text(strange)
	p.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Send(now, "dead", sqstest.Draft{Body: lineOfOrder("STRANGE", "pm_card_visa"), Attributes: attributes})
		must(t, err)
	})
	must(t, listDead{Select: selection{Limit: 100}, Verdict: "any"}.list(t.Context(), p.desk))
	must(t, showDead{ID: "STRANGE"}.show(t.Context(), p.desk))
	if got := p.out.String(); strings.Contains(got, "Jane") || strings.Contains(got, "\nredrive  ORD-2") ||
		!strings.Contains(got, "orderonce-reason: [withheld: length ") {
		t.Errorf("printed\n%s\nwant nothing of the producer's", got)
	}
	p.out.Reset()
	must(t, showDead{ID: "STRANGE", Body: true}.show(t.Context(), p.desk))
	if got := p.out.String(); strings.Contains(got, "\nredrive  ORD-2") || strings.ContainsAny(got, "\u009b\u202e") ||
		!strings.Contains(got, `mine: Jane Doe\nredrive  ORD-2\u009b31m\u202e`) {
		t.Errorf("with --body printed\n%s\nwant it quoted", got)
	}
}

// A message may be behind many others.
func TestShowLooksAtTheWholeQueue(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	for n := range 25 {
		p.park(t, order.ReasonStore, lineOfOrder(order.ID(fmt.Sprint("OTHER-", n)), "pm_card_visa"))
	}
	must(t, showDead{ID: "OTHER-24"}.show(t.Context(), p.desk))
	if got := p.out.String(); !strings.Contains(got, "redrive  OTHER-24  store_unavailable") {
		t.Errorf("printed\n%s\nwant the last message", got)
	}
}

// A script stops at exit code 2, because messages that were not seen may be left.
func TestWhatWasNotSeenIsLeft(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		limit   int
		arrange func(*pile)
		printed string
	}{
		"as many as the limit": {limit: 5, printed: "the limit was reached before the end of the queue: see --limit\n"},
		"hidden by another reader": {limit: 100, printed: "SQS counts about 1 more: hidden by another reader", arrange: func(p *pile) {
			p.server.Machine(func(m *sqstest.Machine, now time.Time) {
				_, err := m.Receive(now, "dead", 1, nil)
				must(t, err)
			})
		}},
	} {
		p := newPile(t, "")
		if tt.arrange != nil {
			tt.arrange(p)
		}
		c := discardDead{Select: selection{Limit: tt.limit, Reason: []string{"none"}}, How: emptying{Yes: true}}
		if err := c.discard(t.Context(), p.desk); exitCode(err) != 2 || !strings.Contains(p.out.String(), tt.printed) {
			t.Errorf("%s: got %v and\n%s\nwant exit code 2 and %q", claim, err, p.out, tt.printed)
		}
	}
}

func TestShowPrintsWhatStripeHas(t *testing.T) {
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
}

func TestAnInvalidBodyIsWithheld(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	l := deadletters.Letter{Message: deadletters.Message{Body: `{"orderId":"secret`, Invalid: errors.New("truncated")}}
	must(t, p.show(l, false))
	if got := p.out.String(); strings.Contains(got, "secret") || !strings.Contains(got, "[body withheld: 18 bytes; --body prints it]") {
		t.Errorf("printed\n%s\nwant the body withheld", got)
	}
	l.Detail = "the function's own words"
	p.out.Reset()
	must(t, p.print(l))
	if got := p.out.String(); !strings.Contains(got, l.Detail) || strings.Contains(got, "truncated") {
		t.Errorf("printed\n%s\nwant why the function parked it", got)
	}
}

func TestRedriveAndDiscard(t *testing.T) {
	t.Parallel()
	every := selection{Limit: 100}
	yes := emptying{Yes: true}
	redrive := func(e emptying, verdict string) func(*testing.T, desk) error {
		return func(t *testing.T, d desk) error {
			t.Helper()
			return redriveDead{Select: every, How: e, Verdict: verdict, Rate: 1000}.redrive(t.Context(), d)
		}
	}
	discard := func(e emptying, force bool) func(*testing.T, desk) error {
		return func(t *testing.T, d desk) error {
			t.Helper()
			return discardDead{Select: every, How: e, Force: force}.discard(t.Context(), d)
		}
	}
	whole := []string{"WAITS", "PAID", "REFUSED", "LOST", "?"}
	for claim, tt := range map[string]struct {
		run      func(*testing.T, desk) error
		typed    string
		pipe     bool // standard output is not a terminal
		dead     []string
		redriven []string
		err      error
		code     int
		printed  string
	}{
		"redrive of what is safe": {
			run: redrive(yes, "redrive"), dead: whole[1:], redriven: whole[:1], err: errLeft, code: 2,
			printed: "redriven: 1 message, left: 4\n",
		},
		"redrive after the word": {
			run: redrive(emptying{}, "redrive"), typed: "redrive\n", dead: whole[1:], redriven: whole[:1], err: errLeft, code: 2,
			printed: "Type redrive to send 1 message to the order queue: ",
		},
		"redrive after another word": {
			run: redrive(emptying{}, "redrive"), typed: "yes\n", dead: whole, err: shell.ErrNotConfirmed, code: 1,
		},
		"redrive of a fixed cause": {
			run: redrive(emptying{}, "fix"), typed: "redrive\n", dead: []string{"WAITS", "PAID", "LOST"}, redriven: []string{"REFUSED", "?"},
			err: errLeft, code: 2,
		},
		"redrive of all asks scripts too": {run: redrive(yes, "any"), dead: whole, err: shell.ErrNotConfirmed, code: 1},
		"redrive of all": {
			run: redrive(yes, "any"), typed: "redrive\n", redriven: whole, printed: "redriven: 5 messages, left: 0\n",
		},
		"redrive on a pipe changes nothing": {
			run: redrive(emptying{}, "redrive"), pipe: true, dead: whole, err: errLeft, code: 2,
			printed: "dry run: 1 message would be redriven\n",
		},
		"redrive in a script": {
			run: redrive(yes, "redrive"), pipe: true, dead: whole[1:], redriven: whole[:1], err: errLeft, code: 2,
		},
		"a dry run of redrive": {
			run: redrive(emptying{DryRun: true, Yes: true}, "redrive"), dead: whole, err: errLeft, code: 2,
			printed: "dry run: 1 message would be redriven\n",
		},
		"discard of what is left to no one": {
			run: discard(yes, false), dead: []string{"WAITS", "REFUSED", "LOST", "?"}, err: errLeft, code: 2,
			printed: "discarded: 1 message, left: 4\n",
		},
		"discard of all asks scripts too": {run: discard(yes, true), dead: whole, err: shell.ErrNotConfirmed, code: 1},
		"discard of all":                  {run: discard(yes, true), typed: "discard\n", printed: "discarded: 5 messages, left: 0\n"},
		"discard on a pipe":               {run: discard(emptying{}, true), typed: "discard\n", pipe: true, dead: whole, err: errLeft, code: 2},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newPile(t, tt.typed)
			p.Terminal = !tt.pipe
			err := tt.run(t, p.desk)
			if !errors.Is(err, tt.err) || exitCode(err) != tt.code {
				t.Errorf("got error %v, exit code %d, want %v, %d", err, exitCode(err), tt.err, tt.code)
			}
			if diff := cmp.Diff(p.orders("dead"), tt.dead); diff != "" {
				t.Errorf("dead letters (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(p.orders("orders"), tt.redriven); diff != "" {
				t.Errorf("redriven (-got +want):\n%s", diff)
			}
			if !strings.Contains(p.out.String(), tt.printed) || !strings.Contains(p.out.String(), "Stripe in test mode\n") {
				t.Errorf("printed\n%s\nwant %q in it", p.out, tt.printed)
			}
		})
	}
}

// The function processes each message at once, and Stripe has a limit.
func TestRedriveKeepsToItsRate(t *testing.T) {
	t.Parallel()
	p, began := newPile(t, "redrive\n"), time.Now()
	must(t, redriveDead{Select: selection{Limit: 100}, Verdict: "any", Rate: 20}.redrive(t.Context(), p.desk))
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("5 messages at 20 a second took %s, want 200ms or more", took)
	}
}

// exitCode returns the exit code of the program after an error.
func exitCode(err error) int {
	if coded, ok := errors.AsType[shell.LeftError](err); ok {
		return coded.ExitCode()
	}
	return map[bool]int{true: 0, false: 1}[err == nil]
}

func TestADecisionIsMadeAgainWhenTheMessageIsTaken(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	chosen := map[string]bool{}
	_, err := p.each(t.Context(), deadletters.Filter{}, 100, func(_ context.Context, l deadletters.Letter) (bool, error) {
		chosen[l.ID] = true
		return false, nil
	})
	must(t, err)
	must(t, p.store.SetStatus(t.Context(), "PAID", order.Declined)) // meanwhile
	p.sources.Payments.(*ordertest.Bank).Fail(ordertest.Read, ordertest.LosesRequest)
	took, err := p.take(t.Context(), task{
		selection: selection{Limit: 100},
		takes:     func(l deadletters.Letter) bool { return l.Action == deadletters.Discard },
		do:        func(context.Context, deadletters.Letter) error { t.Error("a message was taken"); return nil },
	}, chosen)
	if err != nil || took != 0 {
		t.Errorf("took %d messages, %v, want none", took, err)
	}
}

// An attempt whose Confirm was lost may still charge a refused order at Stripe: if its
// message were gone and a corrected order posted, the customer would pay twice.
func TestDiscardKeepsAnOrderThatMayBeChargedUntilItIsCanceled(t *testing.T) {
	t.Parallel()
	p := newPile(t, "discard\n")
	bank := p.sources.Payments.(*ordertest.Bank)
	bank.Fail(ordertest.Confirm, ordertest.LosesRequest)
	process(t, p.store, bank, "LOST", "pm_card_visa")
	must(t, p.store.SetStatus(t.Context(), "LOST", order.Refused))
	every := discardDead{Select: selection{Limit: 100}, Force: true}
	if err := every.discard(t.Context(), p.desk); !errors.Is(err, errLeft) {
		t.Errorf("got error %v, want %v", err, errLeft)
	}
	if diff := cmp.Diff(p.orders("dead"), []string{"LOST"}); diff != "" {
		t.Errorf("dead letters (-got +want):\n%s", diff)
	}
	want := "kept     LOST  pi_2 may still be charged: orders cancel LOST, then discard\n"
	if !strings.Contains(p.out.String(), want) {
		t.Errorf("printed\n%s\nwant %q in it", p.out, want)
	}

	closing := order.Cancellation{Records: p.store, Payments: bank, Canceler: bank, Scope: scope}
	_, err := closing.Cancel(t.Context(), "LOST", noon())
	must(t, err)
	must(t, discardDead{Select: every.Select, How: emptying{Yes: true}}.discard(t.Context(), p.desk))
	if left := p.orders("dead"); left != nil {
		t.Errorf("after the cancel, %v is left, want nothing", left)
	}
}

func TestDiscardSavesAMessageBeforeItDeletesIt(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	file := filepath.Join(t.TempDir(), "saved.jsonl")
	c := discardDead{Select: selection{Limit: 100}, How: emptying{Yes: true}, Save: file}
	if err := c.discard(t.Context(), p.desk); !errors.Is(err, errLeft) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	must(t, err)
	var got batch.Saved
	must(t, json.Unmarshal(text, &got))
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, %v, want a file that nobody else reads", info.Mode(), err)
	}
	p.park(t, order.ReasonUnknown, lineOfOrder("PAID", "pm_card_visa"))
	if err := c.discard(t.Context(), p.desk); !errors.Is(err, errLeft) {
		t.Fatal(err)
	}
	if both, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(both), string(text)) || len(both) < 2*len(text)-9 {
		t.Errorf("got %s, %v, want the second message after the first", both, err)
	}
	buyer := *got.Attributes["buyer"].StringValue
	if got.Body != lineOfOrder("PAID", "pm_card_visa") || got.Reason != "provider_unknown" ||
		!bytes.Equal(got.Attributes["photo"].BinaryValue, []byte{1, 2}) ||
		!got.FirstSent.Equal(noon().Add(-150*time.Hour).Truncate(time.Second)) || buyer != "Jane Doe" {
		t.Errorf("saved %s\nwant the message whole", text)
	}
	c.Save = filepath.Join(t.TempDir(), "no-such-folder", "saved.jsonl")
	p = newPile(t, "")
	if err := c.discard(t.Context(), p.desk); !errors.Is(err, os.ErrNotExist) || len(p.orders("dead")) != 5 {
		t.Errorf("got error %v and %d messages, want a missing folder and all", err, len(p.orders("dead")))
	}
}
