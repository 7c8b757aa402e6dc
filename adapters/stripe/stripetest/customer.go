package stripetest

import "strings"

// Customer is who pays an intent, as far as it is modeled. The double has no calls for
// customers: every id that an intent names is one.
type Customer struct {
	ID      string
	Email   string // "" without an address.
	Deleted bool
}

// customer returns the customer with an id, or nil without an id. Its address follows
// from the id, so that no fixture has one: cus_a1 has a1@customers.invalid, and a
// customer whose id starts with cus_noaddress has none.
func (m *Machine) customer(id string) *Customer {
	switch name := strings.TrimPrefix(id, "cus_"); {
	case id == "":
		return nil
	case m.gone[id]:
		return &Customer{ID: id, Deleted: true}
	case strings.HasPrefix(name, "noaddress"):
		return &Customer{ID: id}
	default:
		return &Customer{ID: id, Email: strings.ToLower(name) + "@customers.invalid"}
	}
}

// customerJSON is a customer, as far as it is modeled
// (docs.stripe.com/api/customers/object). A deleted one has only id, object and deleted.
type customerJSON struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Email   *string   `json:"email,omitempty"`
	Locales *[]string `json:"preferred_locales,omitempty"`
	Deleted bool      `json:"deleted,omitempty"`
}

func wireCustomer(c *Customer) *customerJSON {
	wire := &customerJSON{ID: c.ID, Object: "customer", Deleted: c.Deleted}
	if !c.Deleted {
		wire.Email, wire.Locales = orNull(c.Email), &[]string{"en"}
	}
	return wire
}
