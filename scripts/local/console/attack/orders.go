package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
)

// SKU is what the posted orders buy: something that does not run out.
const SKU = "SONG"

// The beginnings of the names of the orders that the visitor and a storm post.
const (
	visitors = "LIVE-"
	stormy   = "STORM-"
)

type content struct {
	id       string
	method   string
	quantity int // of 9.99 USD
}

// body returns the message. Its personal values have a word that nothing may show.
func (c content) body() string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"%[2]s-customer","currency":"usd",`+
		`"lines":[{"sku":%[3]q,"quantity":%[4]d,"unitAmount":999}],`+
		`"payment":{"customer":"cus_%[2]s","method":%[5]q}}`, c.id, watch.Canary, SKU, c.quantity, c.method)
}

// The messages that are posted of one content.

func once(c content) []string { return []string{c.body()} }

func twice(c content) []string { return []string{c.body(), c.body()} }

func conflicting(c content) []string {
	other := c
	other.quantity += 10
	return []string{c.body(), other.body()}
}

func malformed(c content) []string {
	return []string{strings.Replace(c.body(), `"currency"`, `"discount":500,"currency"`, 1)}
}

func paying(method string) func(content) []string {
	return func(c content) []string {
		c.method = method
		return once(c)
	}
}

func (a *Attacker) next() content {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.posted++
	id := fmt.Sprintf("%s%d", visitors, a.posted)
	return content{id: id, method: incidents.Pays, quantity: 1 + a.posted%3}
}

func (a *Attacker) post(text string, bodies func(content) []string) action {
	return func(context.Context) (console.Result, error) {
		c := a.next()
		return a.postOf(c, text, bodies(c))
	}
}

func (a *Attacker) postOf(c content, text string, bodies []string) (console.Result, error) {
	return console.Result{Text: "You: " + c.id + " " + text, Order: c.id}, a.send(bodies)
}

func (a *Attacker) postMany(n, repeated int, text string) (console.Result, error) {
	var bodies []string
	var last content
	for i := range n {
		last = a.next()
		bodies = append(bodies, once(last)...)
		if i < repeated {
			bodies = append(bodies, once(last)...)
		}
	}
	return console.Result{Text: "You: " + text, Order: last.id}, a.send(bodies)
}

func (a *Attacker) send(bodies []string) error {
	_, err := a.target().Post(system.Drafts(bodies...))
	return err
}

// orderOf returns the order that a message of the order queue names, or "".
func orderOf(body string) string {
	var m struct {
		OrderID string `json:"orderId"`
	}
	if json.Unmarshal([]byte(body), &m) != nil {
		return ""
	}
	return m.OrderID
}
