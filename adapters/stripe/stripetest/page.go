package stripetest

import "slices"

// Objects is one page of a list of refunds or disputes, newest first.
type Objects[T object] struct {
	Items []T
	More  bool
}

// object is a refund or dispute: an object of an account, about an intent.
type object interface {
	*Refund | *Dispute
	about() (id, account, intent string)
}

func (r *Refund) about() (id, account, intent string)  { return r.ID, r.Account, r.Intent }
func (d *Dispute) about() (id, account, intent string) { return d.ID, d.Account, d.Intent }

// find returns the current version of an object of an account, or nil.
func find[T object](all []T, account, id string) T { //nolint:ireturn // a pointer
	for _, o := range all {
		if is, of, _ := o.about(); is == id && of == account {
			return o
		}
	}
	return nil
}

// newest returns a page of the objects that the list shows.
func newest[T object](all []T, p listParams, late func(T) bool) *Objects[T] {
	page := Objects[T]{}
	started := p.after == ""
	for _, o := range slices.Backward(all) {
		id, account, intent := o.about()
		shown := started && !late(o) && account == p.account && (p.intent == "" || p.intent == intent)
		started = started || id == p.after
		if shown && len(page.Items) == p.limit {
			page.More = true
			break
		}
		if shown {
			page.Items = append(page.Items, o)
		}
	}
	return &page
}

// readObjects checks the parameters of a list of the objects of an intent.
func readObjects[T object](m *Machine, c *call, all []T, kind string) *Response {
	p := &c.list
	p.account, p.intent, p.after = c.account(), c.Form.Get("payment_intent"), c.Form.Get("starting_after")
	if intent := m.Intent(p.intent); p.intent != "" && (intent == nil || intent.Account != p.account) {
		return missing("payment_intent", "payment_intent", p.intent)
	}
	if p.after != "" && find(all, p.account, p.after) == nil {
		return missing("starting_after", kind, p.after)
	}
	return readLimit(c.Form, p)
}

// wireObjects is a page as JSON.
func wireObjects[T object, W any](page *Objects[T], url string, wire func(T) W) *listJSON {
	list := &listJSON{Object: "list", URL: url, More: page.More, Data: []any{}}
	for _, o := range page.Items {
		list.Data = append(list.Data, wire(o))
	}
	return list
}
