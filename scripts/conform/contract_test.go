package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	domain "orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// The contracts of package order and refund, through the adapters, at the double or, if
// ENDPOINT is live, at Stripe with the test key in STRIPE_SECRET_KEY. There, a promise
// that needs what nobody can make Stripe do is skipped with that reason.
func TestContractOfPayments(t *testing.T) {
	ordertest.TestPayments(t, func(t *testing.T) ordertest.PaymentsUnderTest {
		t.Helper()
		return newAccount(t).payments()
	})
}

func TestContractOfRefunds(t *testing.T) {
	refundtest.TestProvider(t, func(t *testing.T) refundtest.ProviderUnderTest {
		t.Helper()
		return newAccount(t).refunds()
	})
}

// account is a Stripe account, as far as its API shows and changes it. Faults happen on
// the way there.
type account struct {
	t      *testing.T
	url    string
	key    string
	double *stripetest.Server // nil: Stripe itself
	scope  order.Scope
	faults *faults
	port   *charge.Payments
	option stripe.Options
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{t: t, url: "https://api.stripe.com", key: os.Getenv("STRIPE_SECRET_KEY")}
	if os.Getenv("ENDPOINT") != "live" {
		server, err := stripetest.Serve(stripetest.Options{})
		must(t, err)
		t.Cleanup(func() { _ = server.Close() })
		a.double, a.url, a.key = server, server.URL, rigtest.Key
	} else if stripe.Live(a.key) || a.key == "" {
		t.Fatal("STRIPE_SECRET_KEY: want a test key")
	}
	a.scope = order.Scope(fmt.Sprintf("conform-%d", time.Now().UnixNano()))
	a.faults = &faults{next: map[string]ordertest.Fault{}}
	way := func(rt http.RoundTripper) http.RoundTripper { return faulty{rt, a.faults} }
	a.option = stripe.Options{
		Key: a.key, BaseURL: a.url, Scope: a.scope, Transport: way(http.DefaultTransport), Now: a.now,
		Dedicated: &http.Transport{}, Measure: way,
	}
	if a.double == nil {
		a.faults.customer = a.call("POST", "/v1/customers", "description=orderonce-conform")["id"].(string)
		t.Cleanup(func() { a.call("DELETE", "/v1/customers/"+a.faults.customer, "") })
	}
	a.port = charge.New(a.option)
	return a
}

func (a *account) now() time.Time {
	if a.double != nil {
		return a.double.Now()
	}
	return time.Now()
}

// call calls Stripe past the faults.
func (a *account) call(method, path, form string) (body map[string]any) {
	a.t.Helper()
	target, sent := a.url+path, io.Reader(strings.NewReader(form))
	if method == http.MethodGet {
		target, sent = target+"?"+form, nil
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, target, sent)
	must(a.t, err)
	r.SetBasicAuth(a.key, "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := http.DefaultClient.Do(r)
	must(a.t, err)
	must(a.t, errors.Join(json.NewDecoder(got.Body).Decode(&body), got.Body.Close()))
	return body
}

func (a *account) list(path, form string) (all []map[string]any) {
	a.t.Helper()
	data, _ := a.call(http.MethodGet, path, "limit=100&"+form)["data"].([]any)
	for _, o := range data {
		all = append(all, o.(map[string]any))
	}
	return all
}

func (a *account) of(id order.ID) (own []map[string]any) {
	a.t.Helper()
	for _, i := range a.list("/v1/payment_intents", "") {
		if m := i["metadata"].(map[string]any); m["orderId"] == string(id) && m["scope"] == string(a.scope) {
			own = append(own, i)
		}
	}
	return own
}

// cannot skips a promise that needs what only the double can be made to do.
func (a *account) cannot(what string) {
	a.t.Helper()
	if a.double == nil {
		a.t.Skip("nobody can make Stripe " + what)
	}
}

func (a *account) machine(what string, change func(m *stripetest.Machine) error) {
	a.t.Helper()
	a.cannot(what)
	a.double.Machine(func(m *stripetest.Machine) { must(a.t, change(m)) })
}

// method is a payment method of the account's customer.
func (a *account) method(card string) string {
	a.t.Helper()
	if a.double != nil || strings.Contains(card, "Misspelt") {
		return card
	}
	attached := a.call("POST", "/v1/payment_methods/"+card+"/attach", "customer="+a.faults.customer)
	return fmt.Sprint(attached["id"])
}

func (a *account) card(c ordertest.Card) string {
	a.t.Helper()
	if c == ordertest.TakesDays {
		a.cannot("use a bank account without a mandate")
	}
	if c == ordertest.Declines {
		return a.method("pm_card_chargeCustomerFail") // that can be attached to a customer
	}
	return a.method(rigtest.MethodOf(c))
}

func (a *account) payments() ordertest.PaymentsUnderTest {
	post := func(id order.IntentID, action, form string) {
		a.call("POST", "/v1/payment_intents/"+string(id)+"/"+action, form)
	}
	return ordertest.PaymentsUnderTest{
		Payments: a.port, Canceler: a.port, Scope: a.scope, Method: a.card,
		Charges: func(id order.ID) (all []order.Money) {
			for _, i := range a.of(id) {
				if i["status"] == "succeeded" {
					all = append(all, order.Money{Amount: int64(i["amount_received"].(float64)), Currency: order.Currency(i["currency"].(string))})
				}
			}
			return all
		},
		Declines:   a.declines,
		Fail:       func(c ordertest.Call, f ordertest.Fault) { a.fail(string(c), f) },
		ForgetKeys: func() { a.machine("forget a key", func(m *stripetest.Machine) error { m.ForgetKeys(); return nil }) },
		CatchUp: func() {
			if a.double == nil {
				time.Sleep(time.Minute) // docs.stripe.com/search: "in less than a minute"
			}
		},
		CustomerPays: func(id order.IntentID) {
			post(id, "confirm", "off_session=true&payment_method="+a.card(ordertest.Pays))
		},
		Clear: func(id order.IntentID) {
			a.machine("end a debit", func(m *stripetest.Machine) error { return m.Settle(a.now(), string(id), true) })
		},
		Cancel: func(id order.IntentID) { post(id, "cancel", "") },
	}
}

func (a *account) declines(id order.ID) (n int) {
	if a.double != nil {
		a.double.Machine(func(m *stripetest.Machine) {
			for _, c := range m.Ledger() {
				if c.OrderID == string(id) && c.Outcome == stripetest.Declined {
					n++
				}
			}
		})
		return n
	}
	for _, i := range a.of(id) {
		for _, c := range a.list("/v1/charges", "payment_intent="+i["id"].(string)) {
			if c["status"] == "failed" {
				n++
			}
		}
	}
	return n
}

func (a *account) refunds() refundtest.ProviderUnderTest {
	payments, port := a.payments(), refund.New(a.option)
	change := func(from, to stripetest.RefundStatus) {
		a.machine("end a refund", func(m *stripetest.Machine) (err error) {
			for _, r := range m.Refunds() {
				if r.Status == from {
					err = errors.Join(err, m.ChangeRefund(r.ID, to))
				}
			}
			return err
		})
	}
	return refundtest.ProviderUnderTest{
		Provider: port, Payments: a.port, Scope: a.scope, Now: a.now, Method: a.card,
		Advance: func(d time.Duration) {
			if d > 0 {
				a.cannot("wait " + d.String())
				a.double.Advance(d)
			}
		},
		PendingMethod: func() string { return a.method("pm_card_pendingRefund") },
		Fail:          func(c refundtest.Call, f ordertest.Fault) { a.fail(string(c), f) },
		ForgetKeys:    payments.ForgetKeys,
		Complete: func() {
			a.machine("execute a lost request", func(m *stripetest.Machine) error { m.RollForward(a.now()); return nil })
		},
		Settle: func(s domain.Status) { change(stripetest.RefundPending, stripetest.RefundStatus(s)) },
		Return: func() { change(stripetest.RefundSucceeded, stripetest.RefundFailed) },
		InDashboard: func(id order.IntentID, amount int64) {
			a.call("POST", "/v1/refunds", fmt.Sprintf("payment_intent=%s&amount=%d", id, amount))
		},
		Dispute: func(id order.IntentID) {
			a.machine("dispute a charge later", func(m *stripetest.Machine) error { _, err := m.OpenDispute(a.now(), string(id)); return err })
		},
		Made: func(id order.IntentID) (all []int64) {
			for _, r := range a.list("/v1/refunds", "payment_intent="+string(id)) {
				if r["status"] != "failed" {
					all = append([]int64{int64(r["amount"].(float64))}, all...)
				}
			}
			return all
		},
	}
}

// fail makes the next call fail, on the way to Stripe if that is enough.
func (a *account) fail(call string, f ordertest.Fault) {
	a.t.Helper()
	session := call == string(refundtest.Create) && f == ordertest.LosesRequest // it sees that nothing was sent
	if session || f == ordertest.StoresFailure || f == ordertest.StoresFailureAfterEffect {
		a.cannot("lose a request that arrived, or fail with a 500")
		fault := rigtest.FaultOf(ordertest.Call(call), f)
		if call == string(refundtest.Create) {
			fault.On = stripetest.CreateRefund
		}
		a.double.Fail(fault)
		return
	}
	a.faults.mu.Lock()
	defer a.faults.mu.Unlock()
	a.faults.next[call] = f
}

// faults are what happens to requests on their way.
type faults struct {
	customer string // replaces the pretend customer of the contract's orders, unless it is ""

	mu   sync.Mutex
	next map[string]ordertest.Fault // by the contract's name of the call
}

func (f *faults) take(r *http.Request) ordertest.Fault {
	call, tail := "read", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case tail == "confirm", tail == "cancel":
		call = tail
	case tail == "search":
		call = "find"
	case r.Method == http.MethodPost && tail == "refunds":
		call = "create"
	case r.Method == http.MethodPost:
		call = "prepare"
	case strings.HasPrefix(tail, "re_"):
		call = "read_refund"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := f.next[call]
	delete(f.next, call)
	return fault
}

// faulty is a way to Stripe.
type faulty struct {
	http.RoundTripper
	*faults
}

// RoundTrip sends a request, unless it or its response is lost or refused on the way.
func (f faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	refuse := func(status int) *http.Response {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Request-Id": {"req_pretend"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error":{"type":"api_error","message":"refused on the way"}}`)),
		}
	}
	fault := f.take(r)
	switch fault { //nolint:exhaustive // the others need Stripe
	case ordertest.ReturnsUnavailable:
		return refuse(http.StatusTooManyRequests), nil
	case ordertest.ReturnsMisconfigured:
		return refuse(http.StatusUnauthorized), nil
	case ordertest.LosesRequest:
		return nil, errors.New("the request is lost")
	}
	if f.customer != "" && r.Body != nil {
		form, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form = bytes.ReplaceAll(form, []byte("customer=cus_pretend"), []byte("customer="+f.customer))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(form)), int64(len(form))
	}
	response, err := f.RoundTripper.RoundTrip(r)
	if err == nil && fault == ordertest.LosesResponse {
		return nil, errors.Join(errors.New("the response is lost"), response.Body.Close())
	}
	return response, err
}
