package stripetest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listed is an object that lists show.
type listed interface {
	*Intent | *Refund | *Dispute
	about() (id, intent string, created time.Time)
	wire() object
}

func (i *Intent) about() (id, intent string, created time.Time) { return i.ID, i.ID, i.Created }
func (r *Refund) about() (id, intent string, created time.Time) { return r.ID, r.Intent, r.Created }

func (d *Dispute) about() (id, intent string, created time.Time) { return d.ID, d.Intent, d.Created }

func find[T listed](all []T, id string) T { //nolint:ireturn // a pointer
	for _, o := range all {
		if is, _, _ := o.about(); is == id {
			return o
		}
	}
	return nil
}

// page returns a page of the objects that are shown, newest first
// (docs.stripe.com/api/pagination). Lists of disputes and refunds may be those of one
// intent. Of the limits of created, the two of a half-open interval are modeled.
func page[T listed](m *Machine, c *call, all []T, shown func(T) bool, wire func(T) object) Response {
	of, after := c.Form.Get("payment_intent"), c.Form.Get("starting_after")
	limit, refusedLimit := integer(c.Form, "limit", 10)
	from, refusedFrom := integer(c.Form, "created[gte]", 0)
	before, refusedBefore := integer(c.Form, "created[lt]", 1<<62)
	refused := first(refusedLimit, refusedFrom, refusedBefore)
	created := func(t time.Time) bool { return t.Unix() >= from && t.Unix() < before }
	switch {
	case of != "" && m.Intent(of) == nil:
		return *missing("payment_intent", "payment_intent", of)
	case after != "" && find(all, after) == nil:
		return *missing("starting_after", "object", after)
	case refused != nil:
		return *refused
	case limit < 1 || limit > 100:
		return *invalid("parameter_invalid_integer", "limit", "Limit must be between 1 and 100.")
	}
	data, more, started := []any{}, false, after == ""
	for _, o := range slices.Backward(all) {
		id, intent, at := o.about()
		show := started && (of == "" || of == intent) && created(at) && shown(o)
		started = started || id == after
		if more = show && len(data) == int(limit); more {
			break
		}
		if show {
			data = append(data, wire(o))
		}
	}
	return Response{Status: 200, list: object{"object": "list", "url": c.Path, "has_more": more, "data": data}}
}

// listIntents lists intents (docs.stripe.com/api/payment_intents/list).
func (m *Machine) listIntents(_ time.Time, c *call) Response {
	customer, charges := c.Form.Get("customer"), len(c.expansions()) > 0
	shown := func(i *Intent) bool { return customer == "" || customer == i.Customer }
	return page(m, c, m.intents, shown, func(i *Intent) object {
		if charges {
			return m.withCharge(i)
		}
		return i.wire()
	})
}

func (m *Machine) withCharge(i *Intent) object {
	o := i.wire()
	if charge := m.latestCharge(i); charge != nil {
		o["latest_charge"] = charge.wire(i.LatestCharge)
	}
	return o
}

func (m *Machine) listDisputes(_ time.Time, c *call) Response {
	return page(m, c, m.disputes, func(*Dispute) bool { return true }, func(d *Dispute) object {
		o := d.wire()
		if len(c.expansions()) > 0 {
			o["payment_intent"] = m.Intent(d.Intent).wire()
		}
		return o
	})
}

func (m *Machine) listRefunds(now time.Time, c *call) Response {
	visible := func(r *Refund) bool { return now.Sub(r.Created) >= m.rules.RefundLag }
	intents := len(c.expansions()) > 0
	return page(m, c, m.refunds, visible, func(r *Refund) object {
		o := r.wire()
		if intents {
			o["payment_intent"] = m.withCharge(m.Intent(r.Intent))
		}
		return o
	})
}

// search finds intents by their metadata. That it lags (docs.stripe.com/search) is not
// modeled. The only modeled clause is an exact match of metadata.
func (m *Machine) search(_ time.Time, c *call) Response {
	query := c.Form.Get("query")
	if query == "" {
		return *invalid("parameter_missing", "query", "Missing required param: query.")
	}
	clause, wanted := regexp.MustCompile(`^metadata\['([^']+)'\]:'([^']*)'$`), map[string]string{}
	for part := range strings.SplitSeq(query, " AND ") {
		match := clause.FindStringSubmatch(part)
		if match == nil {
			return *invalid("", "query", "Not modeled: want metadata['name']:'value' joined by AND, got %q.", part)
		}
		wanted[match[1]] = match[2]
	}
	found := page(m, c, m.intents, func(i *Intent) bool {
		for name, value := range wanted {
			if i.Metadata[name] != value {
				return false
			}
		}
		return true
	}, (*Intent).wire)
	found.list["object"] = "search_result" // docs.stripe.com/api/payment_intents/search
	return found
}

// readIntent returns an intent with what the request expands.
// docs.stripe.com/api/refunds: the 10 most recent refunds are on the charge.
func (m *Machine) readIntent(now time.Time, c *call) Response {
	i := m.Intent(c.id)
	response := Response{Status: 200, Intent: i, expanded: object{}}
	for _, property := range c.expansions() {
		charge := m.latestCharge(i)
		switch {
		case property == "customer" && i.Customer != "":
			response.expanded["customer"] = m.customer(i.Customer)
		case property == "customer" || charge == nil:
		default:
			o := charge.wire(i.LatestCharge)
			if property == "latest_charge.refunds" {
				of := *c
				of.Path, of.Form = "/v1/charges/"+i.LatestCharge+"/refunds", map[string][]string{"payment_intent": {i.ID}}
				o["refunds"] = m.listRefunds(now, &of).list
			}
			response.expanded["latest_charge"] = o
		}
	}
	return response
}

// customer is a customer, as far as it is modeled (docs.stripe.com/api/customers/object).
// The double has no calls for customers: every id that an intent names is one. Its
// address follows from the id, so that no fixture has one: cus_a1 has
// a1@customers.invalid, and a customer whose id starts with cus_noaddress has none.
func (m *Machine) customer(id string) object {
	if m.gone[id] {
		return object{"id": id, "object": "customer", "deleted": true}
	}
	o := object{"id": id, "object": "customer", "email": nil, "preferred_locales": []string{"en"}}
	if name := strings.TrimPrefix(id, "cus_"); !strings.HasPrefix(name, "noaddress") {
		o["email"] = strings.ToLower(name) + "@customers.invalid"
	}
	return o
}

// integer reads an integer parameter that is not negative, or a default without one.
func integer(form map[string][]string, name string, otherwise int64) (int64, *Response) {
	values := form[name]
	if len(values) == 0 {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("parameter_invalid_integer", name, "Invalid integer: %s", values[0])
	}
	return n, nil
}
