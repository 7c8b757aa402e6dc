// Package baselines is what people copy when they want an order charged once: each design as its source describes it, written
// once against a table of four calls. They are controls: a search or a storm that finds nothing in them proves nothing
// about the product. It refuses to know who runs it; a map and a pretend Stripe without a socket do, and so do DynamoDB and HTTP.
//
// Where its source leaves a choice, a design takes the stronger one. This is how it ends at its worst (TestTheTableIsTrue
// computes it):
//
//	                       again    resent   at once  frozen   dies     dies 25h 4 days   no reply 500 done 500      other
//	check-then-act         .        .        twice    twice    twice    twice    .        twice    twice    .        silent
//	message-id-before      .        twice    .        twice    lost     twice    twice    lost     lost     lost     twice
//	message-id-after       .        twice    twice    twice    twice    twice    twice    twice    twice    .        twice
//	short-lock             twice    twice    twice    twice    twice    twice    twice    twice    twice    .        twice
//	stripe-key             .        .        .        twice    .        twice    twice    .        stuck    stuck    .
//	idempotency-record     .        .        .        twice    .        twice    twice    .        stuck    stuck    silent
//	idempotency-record-24h .        .        .        twice    .        twice    twice    .        stuck    stuck    .
//	patterns               .        .        .        twice    .        twice    twice    .        stuck    stuck    silent
//	look-up-late           twice    twice    twice    twice    twice    .        .        twice    twice    .        twice
//	look-up                .        .        twice    twice    .        .        .        .        .        .        silent
//	look-up-stripe-key     .        .        .        twice    .        .        .        .        stuck    stuck    silent
//
// The histories. again: the same message comes again a minute later. resent: so does another message with the same order. at once:
// two deliveries overlap, at any call. frozen: a worker stands still for a day before any call, while another one works. dies:
// a worker dies after any call, and the message comes back in six minutes, or in 25 hours. 4 days: a settled order is
// redriven. no reply: Stripe's answer is lost as often as its SDK asks. 500 done: Stripe's answer is a 500 and the money has
// moved. 500: it has not. other: another order under the same id.
//
// The ends. A dot: charged once, the row says so, and other content is not acknowledged. twice: charged twice. lost: the message
// is gone and the row does not say that the order is paid. silent: other content was acknowledged and not charged. stuck: five
// deliveries were not enough, which is honest, but it is a dead letter.
//
// One more holds for all of them: a bank that only wants the customer is written down as FAILED.
package baselines

import (
	"context"
	"slices"
	"time"
)

// Env is what a design reaches. Time comes from Now alone.
type Env struct {
	Table    Table
	Stripe   *Stripe
	Now      func() time.Time
	Deadline time.Time         // when Lambda will end this invocation, as its context tells; never zero
	Warn     func(text string) // the design's log; nil is none
}

func (e Env) warn(text string) {
	if e.Warn != nil {
		e.Warn(text)
	}
}

// Message is what SQS delivers. A redelivery has the same ID; a redrive, or a producer that sends twice, another one.
type Message struct{ ID, Body string }

// Handler is a design: nil means that the message is deleted, an error that it comes back. A handler keeps nothing between two
// messages, starts no goroutine and sets no timer, and all that it does goes through Env.
type Handler func(context.Context, Env, Message) error

// Design is a design with what is said about it.
type Design struct {
	Name    string // for tables and command lines
	Pattern string // what it does
	Claim   string // what its authors promise
	Source  string // what kind of text it is copied from
	Enough  string // where it is enough
	FIFO    bool   // it wants a FIFO queue, with the orderId as message group and deduplication id
	// ListLag is how late what it looks in is (stripetest.Rules): Stripe's list is not, its search is, up to an hour in an outage.
	ListLag time.Duration
	Handle  Handler
}

// All returns every design, the simplest first.
func All() []Design { return slices.Concat(simple(), layered(), lookups()) }

func simple() []Design {
	return []Design{
		{
			Name: "check-then-act", Pattern: "read the order's row; if there is none, work and put it", Handle: checkThenAct,
			Source: "an article of a Lambda course", Claim: "a message that is delivered twice is processed once",
			Enough: "for duplicates one after the other, at any age, once the row is written",
		},
		{
			Name: "message-id-before", Pattern: "put the messageId if it is absent, then work", Handle: messageIDBeforeWork,
			Source: "an article on exactly-once with SQS", Claim: "1,000 concurrent messages without a duplicate effect",
			Enough: "for work that may be lost and must not be doubled within a day",
		},
		{
			Name: "message-id-after", Pattern: "work, then put the messageId", Handle: messageIDAfterWork,
			Source: "the same article's advice", Claim: "no message is lost", Enough: "for work that may be done twice",
		},
		{
			Name: "short-lock", Pattern: "lock the messageId for five seconds, warn if it is locked, work", Handle: shortLock,
			Source: "a blog on idempotent handlers", Claim: "one consumer at a time handles a message",
			Enough: "to count duplicates in a log",
		},
		{
			Name: "stripe-key", Pattern: "one call under a Stripe key made of the orderId", Handle: stripeKeyOnly,
			Source: "Stripe's pages and many articles", Claim: "the same request is performed once",
			Enough: "if nothing comes back after 24 h",
		},
	}
}

func layered() []Design {
	return []Design{
		{
			Name: "idempotency-record", Pattern: "an idempotency record by orderId for 1 h, and a Stripe key",
			Source: "Powertools for AWS Lambda, its defaults", Claim: "the function runs once for a key while the record lives",
			Enough: "for duplicates and deaths within 24 h", Handle: idempotencyRecord{life: time.Hour}.handle,
		},
		{
			Name: "idempotency-record-24h", Pattern: "an idempotency record by orderId for 24 h with payload check, and a Stripe key",
			Source: "Powertools for AWS Lambda, with a longer life and its payload check",
			Claim:  "the same, and other content is refused",
			Enough: "for duplicates and deaths within 24 h, and other content",
			Handle: idempotencyRecord{life: 24 * time.Hour, payloadCheck: true}.handle,
		},
		{
			Name: "patterns", Pattern: "FIFO, a dedupe row for 72 h, a Stripe key, side effects after the check", FIFO: true,
			Source: "an article that lists idempotency patterns", Claim: "what one layer lets through the next one catches",
			Enough: "if every message is done or given up within 24 h", Handle: patterns,
		},
	}
}

func lookups() []Design {
	return []Design{
		{
			Name: "look-up-late", ListLag: time.Hour,
			Pattern: "look for the intent by a search that is an hour late, as Stripe's in an outage, else charge",
			Source:  "no single text: the usual repair, with Stripe's search", Claim: "a charge is found by whoever comes next",
			Enough: "if deliveries of an order are more than an hour apart", Handle: lookup{}.handle,
		},
		{
			Name: "look-up", Pattern: "look for the intent in Stripe's list, which is not late, else charge",
			Source: "the same, with Stripe's list", Claim: "a charge is found by whoever comes next",
			Enough: "if no two deliveries of an order overlap", Handle: lookup{}.handle,
		},
		{
			Name: "look-up-stripe-key", Pattern: "the same late search, and a Stripe key", ListLag: time.Hour,
			Source: "no single text: the two together", Claim: "the key holds for a day, the search for ever after",
			Enough: "for deaths and redrives at any age: only a worker that stood still for longer than the key lives charges again",
			Handle: lookup{stripeKey: true}.handle,
		},
	}
}
