package stripetest_test

import (
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
)

func TestTheCustomerOfAnIntentIsExpanded(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		customer string
		deleted  bool
		key      string
		want     string
	}{
		"with an address": {
			"cus_A1", false, "sk_test_a",
			`"customer":{"id":"cus_A1","object":"customer","email":"a1@customers.invalid","preferred_locales":["en"]}`,
		},
		"without an address": {
			"cus_noaddress1", false, "sk_test_a",
			`"customer":{"id":"cus_noaddress1","object":"customer","preferred_locales":["en"]}`,
		},
		"a deleted one":              {"cus_A1", true, "sk_test_a", `"customer":{"id":"cus_A1","object":"customer","deleted":true}`},
		"none":                       {"", false, "sk_test_a", `"customer":null`},
		"not for a key that may not": {"cus_A1", false, "rk_test_a", "Having the 'rak_customer_read' permission"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{NoCustomers: true})
			form := "amount=50&currency=usd"
			if tt.customer != "" {
				form += "&customer=" + tt.customer
			}
			send := func(method, path, form string) stripetest.Response {
				r := request(method, path, "", form)
				r.APIKey = tt.key
				return w.Do(w.now, r)
			}
			id := send("POST", root, form).Intent.ID
			if tt.deleted {
				w.DeleteCustomer(tt.customer)
			}
			if got := string(send("GET", root+"/"+id, "expand[]=customer").Body()); !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
