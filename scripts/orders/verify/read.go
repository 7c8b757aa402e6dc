package verify

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/orders/audit"
)

// Item is an item in DynamoDB's JSON, as far as items of orders have attributes.
type Item map[string]attribute

type attribute struct {
	S *string `json:"S,omitempty"`
	N *string `json:"N,omitempty"`
	M Item    `json:"M,omitempty"`
}

// NewItem returns an item as JSON has it.
func NewItem(item dynamodb.Item) Item {
	all := Item{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			all[name] = attribute{S: &v.Value}
		case *types.AttributeValueMemberN:
			all[name] = attribute{N: &v.Value}
		case *types.AttributeValueMemberM:
			all[name] = attribute{M: NewItem(v.Value)}
		}
	}
	return all
}

func (i Item) decode() dynamodb.Item {
	item := dynamodb.Item{}
	for name, a := range i {
		switch {
		case a.S != nil:
			item[name] = dynamodb.Text(*a.S)
		case a.N != nil:
			item[name] = &types.AttributeValueMemberN{Value: *a.N}
		default:
			item[name] = &types.AttributeValueMemberM{Value: a.M.decode()}
		}
	}
	return item
}

// Object is one of Stripe's, or a list of them.
type Object struct {
	stripe.PaymentIntent // what every object has, and an intent alone

	Kind     string   `json:"object"`
	Of       parent   `json:"payment_intent"`
	Captured int64    `json:"amount_captured,omitempty"`
	Received int64    `json:"amount_received,omitempty"`
	Data     []Object `json:"data,omitempty"`
	Charge   parent   `json:"latest_charge"`
}

// parent is an object that another one names, and that may be expanded.
type parent struct {
	ID       order.IntentID    `json:"id"`
	Metadata map[string]string `json:"metadata"`     // nil unless it is
	Failure  string            `json:"failure_code"` // of a charge
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *parent) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return json.Unmarshal(text, &p.ID)
	}
	type plain parent
	return json.Unmarshal(text, (*plain)(p))
}

// of returns a value of the metadata of the object, or of its intent.
func (o Object) of(key string) string { return cmp.Or(o.Metadata[key], o.Of.Metadata[key]) }

// Event is an event on the bus.
type Event struct {
	Source string `json:"source"`
	Detail struct {
		invariants.Event

		At time.Time `json:"occurredAt"`
	} `json:"detail"`
}

// entry is one thing that was read about an order: one of these.
type entry struct {
	OrderID order.ID         `json:"id"`
	Item    Item             `json:"i,omitempty"`
	Object  *Object          `json:"o,omitempty"`
	Event   *Event           `json:"e,omitempty"`
	Line    *invariants.Line `json:"l,omitempty"`
}

// Folder keeps what was read on disk, without customers and payment methods.
type Folder struct {
	audit.Files

	Scope   order.Scope          // of Stripe's objects and events; "" is any
	Leaked  func(l Report) error // is called for each log line that seems to hold a secret
	mode    order.Mode           // of Stripe's objects, once one was read
	read    map[Source]int
	skipped int
	leaks   int
}

// Open opens a folder in an empty directory.
func Open(dir string) (*Folder, error) {
	path := func(n int) string { return filepath.Join(dir, fmt.Sprintf("part-%03d.jsonl", n)) }
	files, err := audit.OpenFiles(path, make([]int64, audit.Parts))
	return &Folder{Files: files, read: map[Source]int{}}, err
}

func (f *Folder) add(from Source, e entry) error {
	f.read[from]++
	return f.Append(audit.PartOf(e.OrderID), e)
}

var (
	errNoItem   = errors.New(`not an item: want {"Item": {"orderId": ...}}`)
	errNoObject = errors.New("not a PaymentIntent, charge, refund or dispute of Stripe, nor a list of them")
	errNoIntent = errors.New("names no order: list it with --expand data.payment_intent")
	errNoEvent  = errors.New("not an event of an order: want source and detail")
)

// ReadRows reads items as an export of DynamoDB to S3 has them.
func (f *Folder) ReadRows(in io.Reader) error {
	return each(in, func(line struct{ Item Item }) error { return f.AddItem(line.Item) })
}

// AddItem adds an item of the table, which loses its customer.
func (f *Folder) AddItem(item Item) error {
	id := item["orderId"].S
	if id == nil {
		return errNoItem
	}
	delete(item, "customerId")
	return f.add(Rows, entry{OrderID: order.ID(*id), Item: item})
}

// ReadStripe reads objects and lists of Stripe, as its API and its CLI print them.
func (f *Folder) ReadStripe(in io.Reader) error { return each(in, f.AddObject) }

// AddObject adds an object of Stripe, or those of a list, whose metadata it reduces to
// that of this application.
func (f *Folder) AddObject(o Object) error {
	for _, listed := range o.Data {
		if err := f.AddObject(listed); err != nil {
			return err
		}
	}
	for _, m := range []map[string]string{o.Metadata, o.Of.Metadata} { // what others wrote there may be personal
		maps.DeleteFunc(m, func(key, _ string) bool {
			ours := []string{stripe.MetaOrder, stripe.MetaScope, stripe.MetaFingerprint, metaRefund}
			return !slices.Contains(ours, key)
		})
	}
	id, scope := order.ID(o.of(stripe.MetaOrder)), order.Scope(o.of(stripe.MetaScope))
	switch {
	case o.Data != nil:
		return nil
	case o.ID == "" || o.Kind != intents && o.Kind != charges && o.Kind != refunds && o.Kind != disputes:
		return errNoObject
	case id == "" && o.Of.ID != "" && o.Of.Metadata == nil:
		return fmt.Errorf("%s %s: %w", o.Kind, o.ID, errNoIntent)
	case id == "" || f.Scope != "" && scope != f.Scope:
		f.skipped++
		return nil
	}
	if intent, err := o.Order(); o.Kind == intents && err == nil {
		f.mode = intent.Mode
	}
	return f.add(Stripe, entry{OrderID: id, Object: &o})
}

// ReadEvents reads events of EventBridge, one in a line, as a log group has them that is
// the target of a rule.
func (f *Folder) ReadEvents(in io.Reader) error {
	return lines(in, func(_ int, _, object []byte) error {
		var e Event
		switch err := json.Unmarshal(object, &e); {
		case err != nil || e.Detail.OrderID == "":
			return cmp.Or(err, errNoEvent)
		case f.Scope != "" && e.Source != "orderonce."+string(f.Scope):
			f.skipped++
			return nil
		}
		return f.add(Events, entry{OrderID: e.Detail.OrderID, Event: &e})
	})
}

// ReadLogs reads what the functions printed, and looks for what no line may hold. name is
// that of the file, for findings.
func (f *Folder) ReadLogs(name string, in io.Reader) error {
	return lines(in, func(n int, line, object []byte) error {
		var l invariants.Line
		_ = json.Unmarshal(object, &l) // other lines are about no order
		if invariants.Leak(string(line), l) {
			f.leaks++
			detail := fmt.Sprintf("leak: line %d of %s: a key, a payer, an e-mail address or a card", n, name)
			found := Finding{"I13", detail}
			if err := f.Leaked(Report{OrderID: order.ID(l.OrderID), Findings: []Finding{found}}); err != nil {
				return err
			}
		}
		if l.OrderID == "" || l.Verdict == "" {
			f.read[Logs]++
			return nil
		}
		l.Error = "" // text for people
		return f.add(Logs, entry{OrderID: order.ID(l.OrderID), Line: &l})
	})
}

func each[T any](in io.Reader, take func(T) error) error {
	for d := json.NewDecoder(in); ; {
		var value T
		err := d.Decode(&value)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = take(value)
		}
		if err != nil {
			return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
		}
	}
}

// lines calls take for each line with its number, and with what begins at its first
// brace: a log service prints a time before it.
func lines(in io.Reader, take func(n int, line, object []byte) error) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, 16<<20)
	for n := 1; s.Scan(); n++ {
		line := s.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := take(n, line, line[max(0, bytes.IndexByte(line, '{')):]); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s.Err()
}
