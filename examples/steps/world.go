package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order/ordertest"
)

// world is a queue, a table and Stripe. Stripe is the double of the tests, which obeys
// Stripe's rules for keys and intents. Time is virtual, and what happens at once happens
// inside a call, so a history is the same each time.
type world struct {
	handle  handler
	now     time.Time
	stripe  *stripetest.Machine
	table   map[string]row
	records ordertest.Memory // the table of the product
	queue   []*message       // sent, and not deleted
	dead    []string         // reasons of parked messages; "" of one that SQS moved itself
	on      map[string]func()
	begun   int  // deliveries
	changed bool // the next write meets a row that another writer has just changed
	out     strings.Builder
}

// handler is the code of a step. SQS delivers a message until a delivery returns done, or
// a reason to park it.
type handler func(d *delivery, m message) verdict

// message is a message of the queue. Its ID is new for each send.
type message struct {
	ID         string
	Order      order
	Deliveries int
}

// order is what a shop sends.
type order struct {
	ID     string
	Amount int64 // in cents of a US dollar
	Card   string
}

// row is what the table keeps of an order, or of a message.
type row struct {
	Status  string
	Owner   string    // of the delivery that works on it
	Until   time.Time // end of the owner's lease
	Intent  string
	Attempt int   // deliveries that worked on it
	Amount  int64 // of the order that came first
}

// verdict is what happens to a message: done, again, or the reason for which it moves to
// the dead-letter queue.
type verdict string

const (
	done  verdict = "done"  // SQS deletes it
	again verdict = "again" // SQS delivers it again, after its visibility timeout
	// failed is of a request, which nobody keeps: its caller decides what to do next.
	failed verdict = "failed"
)

const (
	// visibility is how long SQS hides a message that was delivered.
	visibility = 30 * time.Second
	// maxReceiveCount is how often SQS delivers a message before it moves it to the
	// dead-letter queue itself.
	maxReceiveCount = 4
)

func newWorld(h handler) *world {
	return &world{
		handle: h, now: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC), stripe: stripetest.New(stripetest.Rules{}),
		table: map[string]row{}, on: map[string]func(){},
	}
}

func (w *world) print(who, where, text string) {
	fmt.Fprintf(&w.out, "%s  %-1s  %-6s  %s\n", w.now.Format("Jan 2 15:04:05"), who, where, text)
}

func (w *world) pass(d time.Duration, why string) {
	w.now = w.now.Add(d)
	w.print("", "", "-- "+why)
}

func (w *world) send(id string, o order) {
	w.queue = append(w.queue, &message{ID: id, Order: o})
	w.print("", "SQS", fmt.Sprintf("%s arrives: order %s, %s", id, o.ID, dollars(o.Amount)))
}

func dollars(cents int64) string { return fmt.Sprintf("%d.%02d USD", cents/100, cents%100) }

// died unwinds a delivery whose function was killed.
type died struct{}

// deliver delivers the message to a function, if it is still in the queue.
func (w *world) deliver(id string) {
	m := w.find(id)
	if m == nil {
		return
	}
	if m.Deliveries == maxReceiveCount {
		w.print("", "SQS", fmt.Sprintf("dead-letters %s after %d deliveries, without a reason", id, m.Deliveries))
		w.deadLetter(id, "")
		return
	}
	m.Deliveries++
	d := &delivery{world: w, name: letters[w.begun : w.begun+1]}
	w.begun++
	d.print("SQS", "delivers "+id)
	switch v := d.run(*m); v {
	case again:
	case done, failed:
		w.remove(id)
	default:
		w.deadLetter(id, string(v))
	}
}

func (w *world) find(id string) *message {
	i := slices.IndexFunc(w.queue, func(m *message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return w.queue[i]
}

func (w *world) remove(id string) {
	w.queue = slices.DeleteFunc(w.queue, func(m *message) bool { return m.ID == id })
}

func (w *world) deadLetter(id, why string) {
	w.remove(id)
	w.dead = append(w.dead, why)
}

// drain delivers what is left, as SQS does.
func (w *world) drain() {
	for len(w.queue) > 0 {
		for _, m := range slices.Clone(w.queue) {
			w.pass(visibility, "the visibility timeout of "+m.ID+" is over")
			w.deliver(m.ID)
		}
	}
}

const letters = "ABCDEFGHIJ"

// delivery is one delivery of a message to a function, named by a letter.
type delivery struct {
	*world

	name string
}

func (d *delivery) run(m message) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(died); !is {
				panic(p)
			}
			d.print("", "is killed")
			v = again
		}
	}()
	v = d.handle(d, m)
	d.at("before it returns")
	d.print("", v.String())
	return v
}

// String says what SQS does.
func (v verdict) String() string {
	switch v {
	case done:
		return "done: the message is deleted"
	case again:
		return "again: not deleted"
	case failed:
		return "failed: the caller sees an error"
	}
	return "parked: " + string(v)
}

func (d *delivery) print(where, text string) { d.world.print(d.name, where, text) }

// at runs what the history has for this moment of this delivery.
func (d *delivery) at(moment string) {
	if happens := d.on[d.name+" "+moment]; happens != nil {
		delete(d.on, d.name+" "+moment)
		happens()
	}
}

// get reads a row, strongly consistent. A row that is not there is the zero row.
func (d *delivery) get(key string) row {
	r := d.table[key]
	d.print("table", fmt.Sprintf("get %s: %s", key, r))
	return r
}

// condition is the condition of a conditional write.
type condition struct {
	says  string
	holds func(row) bool
}

func anyway() condition { return condition{"", func(row) bool { return true }} }

func nothing() condition {
	return condition{"there is nothing", func(r row) bool { return r == row{} }}
}

// update changes a row if it meets a condition, in one step: a conditional write. It
// returns the row that is there then, and whether it wrote.
func (d *delivery) update(key string, when condition, change func(*row)) (r row, wrote bool) {
	r = d.table[key]
	text, wrote := "", when.holds(r)
	if when.says != "" {
		text = " if " + when.says
	}
	switch {
	case d.meetsChange():
		wrote = false
		d.print("table", fmt.Sprintf("write %s%s: refused, it has changed", key, text))
	case wrote:
		change(&r)
		d.table[key] = r
		d.print("table", fmt.Sprintf("write %s%s: %s", key, text, r))
		d.recorded(r.Status)
	default:
		d.print("table", fmt.Sprintf("write %s%s: refused, it is %s", key, text, r))
	}
	return r, wrote
}

// recorded is after a write.
func (d *delivery) recorded(status string) {
	if status == paid || status == declined || status == refused {
		d.at("after the record")
	}
}

// meetsChange reports, once, whether another writer has just changed the row.
func (w *world) meetsChange() bool {
	met := w.changed
	w.changed = false
	return met
}

func (d *delivery) forget(key string) {
	delete(d.table, key)
	d.print("table", "delete "+key)
}

// Statuses of rows.
const (
	started  = "started"
	paid     = "paid"
	declined = "declined"
	refused  = "refused"
)

// String shows what is set.
func (r row) String() string {
	words := []string{r.Status}
	if r.Owner != "" {
		words = append(words, "by "+r.Owner)
	}
	if r.Intent != "" {
		words = append(words, r.Intent)
	}
	if r.Status == "" {
		return "nothing"
	}
	return strings.Join(words, " ")
}

// create creates a payment intent for an order: no money moves yet. A key of "" is none.
func (d *delivery) create(o order, key string) stripetest.Response {
	return d.call("create "+dollars(o.Amount), "POST", "/v1/payment_intents", key, parameters(o))
}

func parameters(o order) url.Values {
	return url.Values{
		"amount": {fmt.Sprint(o.Amount)}, "currency": {"usd"}, "payment_method": {o.Card}, "metadata[orderId]": {o.ID},
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
	}
}

// confirm confirms an intent: money moves. An intent is paid once, at any age.
func (d *delivery) confirm(intent, key string) stripetest.Response {
	d.at("before the charge")
	defer d.at("after the charge")
	path := "/v1/payment_intents/" + intent + "/confirm"
	return d.call("confirm "+intent, "POST", path, key, url.Values{"off_session": {"true"}})
}

// charge creates an intent and confirms it in one call.
func (d *delivery) charge(o order, key string) stripetest.Response {
	d.at("before the charge")
	defer d.at("after the charge")
	form := parameters(o)
	form.Set("confirm", "true")
	form.Set("off_session", "true")
	return d.call("charge "+dollars(o.Amount), "POST", "/v1/payment_intents", key, form)
}

func (d *delivery) read(intent string) stripetest.Response {
	return d.call("read "+intent, "GET", "/v1/payment_intents/"+intent, "", nil)
}

func (d *delivery) call(what, method, path, key string, form url.Values) stripetest.Response {
	got := d.stripe.Do(d.now, stripetest.Request{
		Method: method, Path: path, APIKey: "sk_test_pretend", Key: key, Form: form,
	})
	if key != "" {
		what += " under " + key
	}
	d.print("Stripe", what+": "+summary(got))
	if got.Lost {
		return stripetest.Response{Lost: true}
	}
	return got
}

func summary(r stripetest.Response) string {
	words := fmt.Sprint(r.Status)
	switch {
	case r.Lost:
		return "no response"
	case r.Error != nil && r.Error.Code != "":
		words += " " + r.Error.Code
	case r.Error != nil:
		words += " " + r.Error.Type
	case r.Intent != nil:
		words += fmt.Sprintf(" %s %s", r.Intent.ID, r.Intent.Status)
	}
	if r.Replayed() {
		words += ", replayed"
	}
	return words
}
