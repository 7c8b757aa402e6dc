package stripetest_test

import (
	"fmt"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// BenchmarkOrder is one order in the Machine: a creation and a confirmation, each with a
// key.
func BenchmarkOrder(b *testing.B) {
	m, now := stripetest.New(stripetest.Rules{}), time.Unix(0, 0)
	form := creation("pm_card_visa")
	for n := 0; b.Loop(); n++ {
		created := m.Do(now, request("POST", root, fmt.Sprintf("p%d", n), form))
		paid := m.Do(now, request("POST", root+"/"+created.Intent.ID+"/confirm", fmt.Sprintf("c%d", n), "off_session=true"))
		if paid.Status != 200 {
			b.Fatal(paid.Status)
		}
	}
}

// BenchmarkBody is the JSON of one response.
func BenchmarkBody(b *testing.B) {
	res := stripetest.New(stripetest.Rules{}).
		Do(time.Unix(0, 0), request("POST", root, "", creation("pm_card_visa")))
	for b.Loop() {
		res.Body()
	}
}

// BenchmarkHTTP is one request over a kept-alive connection, client included.
func BenchmarkHTTP(b *testing.B) {
	s := serve(b, stripetest.Options{})
	form := creation("pm_card_visa")
	for n := 0; b.Loop(); n++ {
		s.mustSend("POST", root, fmt.Sprintf("p%d", n), form)
	}
}
