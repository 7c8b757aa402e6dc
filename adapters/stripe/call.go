package stripe

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"orderonce/domain/order"
)

const (
	intents   = "/v1/payment_intents"
	search    = intents + "/search"
	metaOrder = "orderId"
	metaScope = "scope"

	metaFingerprint = "fingerprint"
)

// call is one request.
type call struct {
	name         string // for errors
	method, path string
	query        string         // of a GET; "" if there is none
	bound        order.IntentID // that the path names; "" if it names none
	key          order.Key
	params       any
	secret       string // the API key, which no error may repeat
}

// reply is the intent as it is; or if it was replayed, as it was.
type reply struct {
	order.Intent
	replayed    bool
	unexplained bool // it has failed, and only its latest charge can tell why
}

var (
	errNoKey    = errors.New("no idempotency key: a write without one is never sent")
	errNoIntent = errors.New("not a PaymentIntent id")
)

// check refuses what must not be sent. An id becomes part of a path, where "" would list every intent and "pi_1/cancel"
// would do something else entirely.
func (c call) check() error {
	if c.method != http.MethodGet && c.key == (order.Key{}) {
		return errNoKey
	}
	if c.path != intents && c.path != search && !order.ValidReference(string(c.bound)) {
		return errNoIntent
	}
	return nil
}

// form is the body of a request.
func (c call) form() *form.Values {
	values := &form.Values{}
	form.AppendTo(values, c.params)
	return values
}

// do sends a call and parses the response.
//
// It goes around Backend.Call, which runs `uname -a` before a process's first request (1.3 to 1.7 ms of a cold start, and
// our host's name in every request from then on), and which invents a key for a write that has none.
func (p *Payments) do(ctx context.Context, c call) (reply, error) {
	var a answer
	answered, err := p.send(ctx, c, &a)
	if err != nil {
		return reply{}, err
	}
	c.secret = p.key
	r := c.parse(&a, answered)
	intent, err := c.classify(r)
	return reply{intent, r.replayed, r.unexplained}, err
}

// send sends a call and decodes the response into v. answered is what Backend.Do returned; err
// is why nothing was sent.
func (p *Payments) send(ctx context.Context, c call, v stripe.LastResponseSetter) (answered, err error) {
	if err := c.check(); err != nil && c.method == http.MethodGet {
		return nil, c.fail(order.Misconfigured, "", err) // a corrupt row, perhaps; its order may have been charged
	} else if err != nil {
		return nil, c.fail(order.Refused, "", err)
	}
	if p.refusal != nil {
		return nil, c.fail(order.Misconfigured, "", p.refusal)
	}
	req, body, err := p.request(ctx, c)
	if err != nil {
		return nil, c.fail(order.Misconfigured, "", redacted{err}) // STRIPE_API_BASE is not a URL
	}
	return p.backend.Do(req, body, v), nil
}

func (p *Payments) request(ctx context.Context, c call) (*http.Request, *bytes.Buffer, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, p.backend.URL+c.path, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.URL.RawQuery = c.query
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Stripe-Version", stripe.APIVersion)
	req.Header.Set("User-Agent", "Stripe/v1 GoBindings/"+stripe.ClientVersion)
	if c.params == nil {
		return req, nil, nil
	}
	body := bytes.NewBufferString(c.form().Encode())
	req.ContentLength = int64(body.Len()) // Do sets the body itself; without its length it would be sent in chunks
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", c.key.String())
	return req, body, nil
}
