package stripe_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// serving are the options of a client whose server has this handler.
func serving(t *testing.T, handler http.HandlerFunc) stripe.Options {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return stripe.Options{Key: rigtest.Key, BaseURL: server.URL, Scope: rigtest.Scope, Transport: &http.Transport{}}
}

// over are the options of a client with a transport of its own.
func over(send rigtest.RoundTripFunc) stripe.Options {
	return stripe.Options{Key: rigtest.Key, Scope: rigtest.Scope, Transport: send}
}

// TestRequests pins every byte that is sent to Stripe, on one connection.
//
// If the parameters of Prepare change, order.PrepareKey must change too. Stripe refuses
// different parameters under a known key, so every order in flight during a deployment
// would be parked.
func TestRequests(t *testing.T) {
	const common = "Accept-Encoding: gzip\nAuthorization: Bearer " + rigtest.Key
	const agent = "Stripe-Version: 2023-10-16\nUser-Agent: Stripe/v1 GoBindings/76.25.0\n"
	const form = "Content-Type: application/x-www-form-urlencoded\n"
	want := map[string]string{
		"prepare": "POST /v1/payment_intents\n" + common + "\nContent-Length: 324\n" + form +
			"Idempotency-Key: test/order/ORD-1/prepare\n" + agent + "\n" +
			"amount=2500&automatic_payment_methods[allow_redirects]=never&automatic_payment_methods[enabled]=true" +
			"&capture_method=automatic&currency=eur&customer=cus_pretend&metadata[fingerprint]=" +
			url.QueryEscape(string(rigtest.NewOrder(t, "pm_card_visa").Fingerprint())) +
			"&metadata[orderId]=ORD-1&metadata[scope]=test&payment_method=pm_card_visa",
		"confirm": "POST /v1/payment_intents/pi_3Pretend/confirm\n" + common + "\nContent-Length: 16\n" + form +
			"Idempotency-Key: test/order/ORD-1/confirm/1\n" + agent + "\noff_session=true",
		"read": "GET /v1/payment_intents/pi_3Pretend\n" + common + "\n" + agent + "\n",
	}
	var got bytes.Buffer
	connections := map[string]bool{}
	p := serving(t, func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		got.WriteString(r.Method + " " + r.RequestURI + "\n")
		_ = r.Header.Write(&got) // sorted
		got.WriteString("\n")
		_, _ = io.Copy(&got, r.Body)
		rigtest.Handler(rigtest.OK(rigtest.Intent("succeeded")))(w, r)
	})
	for name, call := range rigtest.Methods(t, p) {
		got.Reset()
		_, err := call(t.Context())
		rigtest.Must(t, err)
		sent := strings.ReplaceAll(got.String(), "\r", "")
		if diff := cmp.Diff(strings.Split(sent, "\n"), strings.Split(want[name], "\n")); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	if len(connections) != 1 {
		t.Errorf("got connections from %v, want one", connections)
	}
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	p := charge.New(rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
		t.Errorf("%s %s was sent", r.Method, r.Path)
		return stripe.Response{}, stripe.ErrNotSent
	}))
	_, prepare := p.Prepare(t.Context(), rigtest.NewOrder(t, "pm_card_visa"), order.Key{})
	_, confirm := p.Confirm(t.Context(), rigtest.IntentID, order.Key{})
	_, path := p.Confirm(t.Context(), "pi_1/cancel?", order.ConfirmKey(rigtest.Scope, "ORD-1", 1))
	_, read := p.Read(t.Context(), "")
	for claim, tt := range map[string]struct {
		got  error
		want order.ErrorKind
	}{
		"a creation without a key":         {prepare, order.KindRefused},
		"a confirmation without a key":     {confirm, order.KindRefused},
		"a confirmation with a path as id": {path, order.KindRefused},
		"a read without an id":             {read, order.KindMisconfigured},
	} {
		if rigtest.KindOf(t, tt.got) != tt.want {
			t.Errorf("%s: got %v, want %s", claim, tt.got, tt.want)
		}
	}
}

// A proxy may send parts of a request back in a response that is not HTTP, and net/http
// repeats it in its error.
func TestNoResponseIsUnknownAndRepeatsNothing(t *testing.T) {
	fails := func(err error) stripe.Options {
		return over(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	hasty := over(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: endless{r}, Request: r}, nil
	})
	hasty.Timeout = time.Millisecond
	for name, tt := range map[string]struct {
		options stripe.Options
		want    string
		cause   error // that the error wraps; nil: any
	}{
		"a broken connection": {serving(t, func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), "EOF", io.EOF},
		"a truncated body": {serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, rigtest.Intent("succeeded"))
		}), "unexpected EOF", io.ErrUnexpectedEOF},
		"a response that is not HTTP": {serving(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			_, _ = io.WriteString(conn, `{"customer":"cus_canary"}`+"\r\n\r\n")
			_ = conn.Close()
		}), "unreadable response", nil},
		"a malformed header": {
			fails(textproto.ProtocolError("malformed MIME header line: Bearer " + rigtest.Key)), "unreadable response", nil,
		},
		"a refused connection": {
			fails(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}), "dial tcp: connection refused", nil,
		},
		"an unknown authority": {
			fails(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
			"tls: failed to verify certificate: x509: certificate signed by unknown authority", nil,
		},
		"a canceled call":        {fails(context.Canceled), "context canceled", context.Canceled},
		"a time-out in the body": {hasty, context.DeadlineExceeded.Error(), context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := charge.New(tt.options).Read(t.Context(), rigtest.IntentID)
			if err == nil || got != (order.Intent{}) || !strings.HasPrefix(err.Error(), "unknown: read intent pi_3Pretend: "+tt.want) {
				t.Errorf("got %v, %v, want it unknown: %s", got, err, tt.want)
			}
			if tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("got %v, want it to wrap %v", err, tt.cause)
			}
		})
	}
	invalid := stripe.Options{Key: rigtest.Key, BaseURL: "http://canary:canary@[::1"}
	_, err := charge.New(invalid).Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindMisconfigured || strings.Contains(err.Error(), "canary") {
		t.Errorf("an invalid base URL: got %v, want it misconfigured, without the URL", err)
	}
}

// endless is a body that does not arrive before its request times out.
type endless struct{ request *http.Request }

func (e endless) Read([]byte) (int, error) {
	<-e.request.Context().Done()
	return 0, e.request.Context().Err()
}

func (endless) Close() error { return nil }

func TestNoRequestIsRetriedOrRedirected(t *testing.T) {
	for _, status := range []int{307, 308, 409, 429, 500, 503} {
		sent := 0
		p := serving(t, func(w http.ResponseWriter, r *http.Request) {
			sent++
			w.Header().Set("Stripe-Should-Retry", "true")
			w.Header().Set("Location", "/elsewhere")
			rigtest.Handler(rigtest.Failure(status, rigtest.APIError))(w, r)
		})
		for name, call := range rigtest.Methods(t, p) {
			sent = 0
			if _, err := call(t.Context()); err == nil || sent != 1 {
				t.Errorf("%s, %d: got %d requests, error %v, want one and an error", name, status, sent, err)
			}
		}
	}
}

func TestURLsKeysAndTimeouts(t *testing.T) {
	for _, tt := range []struct {
		base, url     string
		timeout, want time.Duration
	}{
		{"", "https://api.stripe.com", 0, stripe.DefaultTimeout},
		{"https://proxy.test/", "https://proxy.test", -1, stripe.DefaultTimeout},
		{"https://proxy.test/stripe", "https://proxy.test/stripe", time.Hour, time.Hour},
		{"https://proxy.test/stripe/", "https://proxy.test/stripe", time.Hour, time.Hour},
	} {
		var sent *http.Request
		var left time.Duration
		options := over(func(r *http.Request) (*http.Response, error) {
			deadline, _ := r.Context().Deadline()
			sent, left = r, time.Until(deadline) //nolint:forbidigo // net/http sets the deadline by this clock
			return nil, http.ErrHandlerTimeout
		})
		options.Key, options.BaseURL, options.Timeout = rigtest.Key+"\n", tt.base, tt.timeout
		for method, name := range map[string]string{
			"prepare": "POST /v1/payment_intents", "read": "GET /v1/payment_intents/{id}",
			"confirm": "POST /v1/payment_intents/{id}/confirm",
		} {
			_, _ = rigtest.Methods(t, options)[method](t.Context())
			got := []string{sent.Method + " " + sent.URL.String(), stripe.CallName(sent), sent.Header.Get("Authorization")}
			url := strings.ReplaceAll(strings.Replace(name, "/v1", tt.url+"/v1", 1), "{id}", string(rigtest.IntentID))
			if diff := cmp.Diff(got, []string{url, name, "Bearer " + rigtest.Key}); diff != "" {
				t.Errorf("base URL %q, %s (-got +want):\n%s", tt.base, method, diff)
			}
			if left > tt.want || left <= tt.want/2 {
				t.Errorf("timeout %v: got %v left of a call, want almost %v", tt.timeout, left, tt.want)
			}
		}
	}
}

const elsewhere = "https://stripe.example"

func TestCheckKey(t *testing.T) {
	for claim, tt := range map[string]struct {
		key, base string
		want      error
	}{
		"a secret test key may be sent anywhere":     {" sk_test_canary_azAZ09\r\n", elsewhere, nil},
		"a restricted test key may be sent anywhere": {"rk_test_canary4242", elsewhere, nil},
		"a live key may be sent to Stripe":           {"rk_live_canary4242\n", "", nil},
		"a live key may not be sent elsewhere":       {"\nsk_live_canary4242", elsewhere, stripe.ErrLiveKey},
		"a restricted live key is sent nowhere else": {"rk_live_canary4242", "https://api.stripe.com", stripe.ErrLiveKey},
		"JSON has an error of its own":               {"\n" + `{"STRIPE_SECRET_KEY":"sk_test_canary"}`, "", stripe.ErrKeyInJSON},
		"an empty key is invalid":                    {"", "", stripe.ErrNotAKey},
		"a publishable key is invalid":               {"pk_test_canary", "", stripe.ErrNotAKey},
		"an organization's key is invalid":           {"sk_org_live_canary", "", stripe.ErrNotAKey},
		"a prefix alone is invalid":                  {"sk_test_", "", stripe.ErrNotAKey},
		"two keys are invalid":                       {"sk_test_canary\nsk_test_canary", "", stripe.ErrNotAKey},
		"a quoted key is invalid":                    {`"sk_test_canary"`, "", stripe.ErrNotAKey},
	} {
		err := stripe.CheckKey(tt.key, tt.base)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %v without the key", claim, err, tt.want)
		}
	}
}

// A client does not rely on the composition root to call CheckKey. Every key that is not
// a test key is live.
func TestALiveKeyIsSentToStripeOnly(t *testing.T) {
	for key, live := range map[string]bool{
		"sk_test_canary": false, "rk_test_canary": false, "\nsk_test_canary": false,
		"sk_live_canary": true, "\nrk_live_canary": true, "sk_canary": true, "": true,
	} {
		for _, base := range []string{"", elsewhere} {
			sent := false
			options := over(func(*http.Request) (*http.Response, error) {
				sent = true
				return nil, http.ErrAbortHandler
			})
			options.Key, options.BaseURL = key, base
			_, err := charge.New(options).Read(t.Context(), rigtest.IntentID)
			refused := live && base != ""
			if sent == refused || refused != errors.Is(err, stripe.ErrLiveKey) || stripe.Live(key) != live {
				t.Errorf("%q to %q: got %v, sent: %t, want it refused: %t", key, base, err, sent, refused)
			}
		}
	}
	double := stripe.Options{Key: "sk_live_canary", BaseURL: "http://127.0.0.1:1", Now: clock}
	_, err := refund.New(double).Open(t.Context()).Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindMisconfigured || !errors.Is(err, stripe.ErrLiveKey) {
		t.Errorf("a refund: got %v, want %v", err, stripe.ErrLiveKey)
	}
}
