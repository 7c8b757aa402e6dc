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
	*testing.T

	server *sqstest.Server
	store  *ordertest.Memory
	bank   *ordertest.Bank
	out    *strings.Builder
}

func newPile(t *testing.T, typed string) *pile {
	t.Helper()
	p := &pile{T: t, store: new(ordertest.Memory), bank: &ordertest.Bank{Scope: scope}, out: new(strings.Builder)}
	process(t, p.store, p.bank, "PAID", pays)
	process(t, p.store, p.bank, "REFUSED", "pm_missing")
	s, err := sqstest.Serve(sqstest.Options{Now: noon})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	p.server = s
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		must(t, m.Create(now, "orders", sqstest.DefaultSettings()))
		must(t, m.Create(now, "dead", sqstest.DefaultSettings()))
	})
	p.park(order.ReasonStore, bodyOf("WAITS", pays))
	p.park(order.ReasonUnknown, bodyOf("PAID", pays))
	p.park(order.ReasonRefused, bodyOf("REFUSED", "pm_missing"))
	p.park(order.ReasonKeyReused, bodyOf("LOST", pays))
	p.park(order.ReasonInvalid, `{"orderId":"secret`)
	sh := testShell(environment("AWS_ENDPOINT_URL="+s.URL), typed, p.out)
	cfg, err := sh.AWS(t.Context())
	must(t, err)
	sh.Terminal = true
	p.desk = desk{
		Shell: sh,
		env:   cloud.DeadLettersEnv{Stripe: cloud.StripeEnv{Key: config.NewSecret(pretendKey)}},
		queue: deadletters.NewQueue(cfg, s.QueueURL("dead"), s.QueueURL("orders"), noon, 0),
		sources: deadletters.Sources{
			Orders: p.store, Accounts: refundtest.NewMemory(p.store), Payments: p.bank,
			Refunds: &refundtest.Bank{Intents: p.bank, Now: noon}, Scope: scope,
		},
	}
	return p
}

func (p *pile) park(why order.Reason, body string) {
	p.send(body, map[string]sqstest.Attribute{
		sqs.AttrReason: sqstest.Text(string(why)), "buyer": sqstest.Text("Jane Doe"),
		sqs.AttrFirstSent: sqstest.Text(noon().Add(-150 * time.Hour).Format(time.RFC3339)),
		"photo":           {Type: "Binary", Binary: []byte{1, 2}},
	})
}

func (p *pile) send(body string, attributes map[string]sqstest.Attribute) {
	p.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Send(now, "dead", sqstest.Draft{Body: body, Attributes: attributes})
		must(p.T, err)
	})
}

// orders returns the orders that a queue has messages of, "?" for an invalid one.
func (p *pile) orders(queue string) (all []string) {
	p.server.Machine(func(m *sqstest.Machine, now time.Time) {
		messages, _ := m.Messages(now, queue)
		for _, one := range messages {
			id := "?"
			if o, err := orders.NewDecoder().Decode(one.Body); err == nil {
				id = string(o.ID())
			}
			all = append(all, id)
		}
	})
	return all
}

// printed returns what a command printed.
func (p *pile) printed(run func(context.Context, desk) error) string {
	p.Helper()
	p.out.Reset()
	must(p.T, run(p.Context(), p.desk))
	return p.out.String()
}

func field(t *testing.T, text string) (f deadletters.Field) {
	t.Helper()
	must(t, f.UnmarshalText([]byte(text)))
	return f
}

func TestDeadLettersAreListedWithTheirVerdict(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	const want = "redrive  WAITS  store_unavailable  not charged\n         nothing is charged or given back twice\n" +
		", first sent 6d ago, parked once, received once\n" +
		"discard  PAID  provider_unknown  charged and settled\n         the order is paid: another delivery changes nothing\n" +
		"fix      REFUSED  refused  not charged\n         correct the cause, then redrive with --verdict=fix\n" +
		"look     LOST  key_reused  unknown\nfix      no order  invalid_order  not charged\n" +
		"         message body: truncated JSON\n         correct the producer and post the order again\n" +
		"5 messages: 1 redrive, 1 discard, 2 fix, 1 look"
	every := listDead{Select: selection{Limit: 100}, Verdict: "any"}
	if printed := p.printed(every.list); missingPart(printed, want) != "" {
		t.Errorf("printed\n%s\nwant %q in it", printed, missingPart(printed, want))
	}
	p = newPile(t, "")
	p.server.Lose("ReceiveMessage", 1) // the SDK repeats it, and gets nothing: the first one hid the messages
	const none = "\n0 messages\nSQS counts about 5 more: hidden by another reader or by a response that was lost, " +
		"behind others of their FIFO group, or gone a moment ago; list again in 5m0s\n"
	if printed := p.printed(every.list); printed != none {
		t.Errorf("after a lost response: printed %q, want %q", printed, none)
	}
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		verdict string
		flags   selection
		want    []string // order ids
	}{
		"by verdict":            {"discard", selection{}, []string{"PAID"}},
		"by reason":             {"any", selection{Reason: []string{"refused", "key_reused"}}, []string{"REFUSED", "LOST"}},
		"by order":              {"any", selection{Order: "WAITS"}, []string{"WAITS"}},
		"by a field":            {"any", selection{Field: []deadletters.Field{field(t, "payment.method=pm_missing")}}, []string{"REFUSED"}},
		"by reason and verdict": {"look", selection{Reason: []string{"refused"}}, nil},
		"by two fields": {"any", selection{
			Field: []deadletters.Field{field(t, "payment.method=pm_missing"), field(t, "orderId=PAID")},
		}, nil},
		"what is older than":     {"any", selection{OlderThan: 151 * time.Hour}, nil},
		"what is newer than":     {"any", selection{NewerThan: 150 * time.Hour}, nil},
		"what is between":        {"look", selection{OlderThan: time.Hour, NewerThan: 151 * time.Hour}, []string{"LOST"}},
		"nothing beyond a limit": {"any", selection{Limit: 1}, []string{"WAITS"}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newPile(t, "")
			p.JSON = true
			if tt.flags.Limit == 0 {
				tt.flags.Limit = 100
			}
			var got []string
			printed := p.printed(listDead{Select: tt.flags, Verdict: tt.verdict}.list)
			for lines := json.NewDecoder(strings.NewReader(printed)); lines.More(); {
				var line view.LetterJSON
				must(t, lines.Decode(&line))
				got = append(got, string(line.OrderID))
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("printed (-got +want):\n%s", diff)
			}
		})
	}
}

// A producer's attributes reach the dead-letter queue when SQS moves the message. They
// may be personal data, and write nothing on the terminal.
func TestShowPrintsAMessageWithoutItsPayer(t *testing.T) {
	t.Parallel()
	p := newPile(t, "")
	const strange = "Jane Doe\nredrive  ORD-2\u009b31m\u202e"
	attributes := map[string]sqstest.Attribute{"mine": sqstest.Text(strange), sqs.AttrTrace: sqstest.Text(strange)}
	for _, name := range []string{"reason", "detail", "order-id", "first-message-id", "first-sent", "times-parked", "dropped"} {
		attributes["orderonce-"+name] = sqstest.Text(strange)
	}
	p.send(bodyOf("STRANGE", pays), attributes)
	for n := range 25 { // a message may be behind many others
		p.park(order.ReasonStore, bodyOf(order.ID(fmt.Sprint("OTHER-", n)), pays))
	}
	for _, tt := range []struct {
		command   showDead
		want, not string
	}{
		{
			showDead{ID: "PAID"}, "discard  PAID  provider_unknown\n  buyer: [withheld: length 8, with ' ']\n" +
				"orderonce-reason: provider_unknown\n  photo: [2 bytes]\n\"customerId\":\"[withheld]\"\n\"sku\":\"MUG\"\nstatus     paid", "",
		},
		{showDead{ID: "PAID", Body: true}, "Jane Doe\ncus_pretend", "withheld"},
		{showDead{ID: "STRANGE"}, "orderonce-reason: [withheld: length ", "\nredrive  ORD-2"},
		{showDead{ID: "STRANGE", Body: true}, `mine: Jane Doe\nredrive  ORD-2\u009b31m\u202e`, "\nredrive  ORD-2"},
		{showDead{ID: "OTHER-24"}, "redrive  OTHER-24  store_unavailable", ""},
	} {
		printed := p.printed(tt.command.show)
		if part := missingPart(printed, tt.want); part != "" || tt.not != "" && strings.Contains(printed, tt.not) {
			t.Errorf("%+v: printed\n%s\nwant %q, and not %q", tt.command, printed, part, tt.not)
		}
		for _, personal := range []string{"cus_pretend", pays, "CUST987", "Jane", "\u009b", "\u202e"} {
			if !tt.command.Body && strings.Contains(printed, personal) || personal > "\u0080" && strings.Contains(printed, personal) {
				t.Errorf("%+v: printed\n%s\nwant no %q in it", tt.command, printed, personal)
			}
		}
	}
	if err := (showDead{ID: "NONE"}).show(t.Context(), p.desk); !errors.Is(err, errNoDeadLetter) {
		t.Errorf("got error %v, want %v", err, errNoDeadLetter)
	}
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
	l.Detail = "the function's own words"
	if text := view.Letter(l, noon()); !strings.Contains(text, l.Detail) || strings.Contains(text, "truncated") {
		t.Errorf("printed\n%s\nwant why the function parked it", text)
	}
}

// A script stops at exit code 2, because messages are left, or may be.
func TestRedriveAndDiscard(t *testing.T) {
	t.Parallel()
	whole := []string{"WAITS", "PAID", "REFUSED", "LOST", "?"}
	yes := emptying{Yes: true}
	type command func(context.Context, desk) error
	redrive := func(how emptying, verdict string) command {
		return redriveDead{Select: selection{Limit: 100}, How: how, Verdict: verdict, Rate: 1000}.redrive
	}
	discard := func(how emptying, force bool) command {
		return discardDead{Select: selection{Limit: 100}, How: how, Force: force}.discard
	}
	none := func(limit int) command {
		return discardDead{Select: selection{Limit: limit, Reason: []string{"none"}}, How: yes}.discard
	}
	hides := func(p *pile) { // another reader
		p.server.Machine(func(m *sqstest.Machine, now time.Time) {
			_, err := m.Receive(now, "dead", 1, nil)
			must(p.T, err)
		})
	}
	for claim, tt := range map[string]struct {
		run            command
		typed          string
		arrange        func(*pile)
		pipe           bool // standard output is not a terminal
		dead, redriven []string
		err            error
		want           string // what is printed
	}{
		"redrive of what is safe": {
			run: redrive(yes, "redrive"), dead: whole[1:], redriven: whole[:1], err: errLeft,
			want: "redriven: 1 message, left: 4\n",
		},
		"redrive after the word": {
			run: redrive(emptying{}, "redrive"), typed: "redrive\n", dead: whole[1:], redriven: whole[:1], err: errLeft,
			want: "Type redrive to send 1 message to the order queue: ",
		},
		"redrive after another word": {run: redrive(emptying{}, "redrive"), typed: "yes\n", dead: whole, err: shell.ErrNotConfirmed},
		"redrive of a fixed cause": {
			run: redrive(emptying{}, "fix"), typed: "redrive\n", dead: []string{"WAITS", "PAID", "LOST"},
			redriven: []string{"REFUSED", "?"}, err: errLeft,
		},
		"redrive of all asks scripts too": {run: redrive(yes, "any"), dead: whole, err: shell.ErrNotConfirmed},
		"redrive of all": {
			run: redrive(yes, "any"), typed: "redrive\n", redriven: whole, want: "redriven: 5 messages, left: 0\n",
		},
		"redrive on a pipe changes nothing": {
			run: redrive(emptying{}, "redrive"), pipe: true, dead: whole, err: errLeft,
			want: "dry run: 1 message would be redriven\n",
		},
		"redrive in a script": {run: redrive(yes, "redrive"), pipe: true, dead: whole[1:], redriven: whole[:1], err: errLeft},
		"a dry run of redrive": {
			run: redrive(emptying{DryRun: true, Yes: true}, "redrive"), dead: whole, err: errLeft,
			want: "dry run: 1 message would be redriven\n",
		},
		"discard of what is left to no one": {
			run: discard(yes, false), dead: []string{"WAITS", "REFUSED", "LOST", "?"}, err: errLeft,
			want: "discarded: 1 message, left: 4\n",
		},
		"discard of all asks scripts too": {run: discard(yes, true), dead: whole, err: shell.ErrNotConfirmed},
		"discard of all":                  {run: discard(yes, true), typed: "discard\n", want: "discarded: 5 messages, left: 0\n"},
		"discard on a pipe":               {run: discard(emptying{}, true), typed: "discard\n", pipe: true, dead: whole, err: errLeft},
		"as many as the limit": {
			run: none(5), dead: whole, err: errLeft, want: "the limit was reached before the end of the queue: see --limit\n",
		},
		"beside another reader": {
			run: none(100), arrange: hides, dead: whole, err: errLeft, want: "SQS counts about 1 more: hidden by another reader",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newPile(t, tt.typed)
			p.Terminal = !tt.pipe
			if tt.arrange != nil {
				tt.arrange(p)
			}
			err := tt.run(t.Context(), p.desk)
			code := map[error]int{nil: 0, shell.ErrNotConfirmed: 1, errLeft: 2}[tt.err]
			if !errors.Is(err, tt.err) || exitCode(err) != code {
				t.Errorf("got error %v, exit code %d, want %v, %d", err, exitCode(err), tt.err, code)
			}
			if diff := cmp.Diff(p.orders("dead"), tt.dead); diff != "" {
				t.Errorf("dead letters (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(p.orders("orders"), tt.redriven); diff != "" {
				t.Errorf("redriven (-got +want):\n%s", diff)
			}
			if part := missingPart(p.out.String(), "Stripe in test mode\n"+tt.want); part != "" {
				t.Errorf("printed\n%s\nwant %q in it", p.out, part)
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
	p.bank.Fail(ordertest.Read, ordertest.LosesRequest)
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
	p.bank.Fail(ordertest.Confirm, ordertest.LosesRequest)
	process(t, p.store, p.bank, "LOST", pays)
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
	closing := order.Cancellation{Records: p.store, Payments: p.bank, Canceler: p.bank, Scope: scope}
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
	for range 2 {
		if err := c.discard(t.Context(), p.desk); !errors.Is(err, errLeft) {
			t.Fatal(err)
		}
		p.park(order.ReasonUnknown, bodyOf("PAID", pays))
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
	c.Save = filepath.Join(t.TempDir(), "no-such-folder", "saved.jsonl")
	if err := c.discard(t.Context(), p.desk); !errors.Is(err, os.ErrNotExist) || len(p.orders("dead")) != 5 {
		t.Errorf("got error %v and %d messages, want a missing folder and all", err, len(p.orders("dead")))
	}
}
