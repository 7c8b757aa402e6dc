package stripetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"
)

// Webhooks sends a server's events to an endpoint: at least once, in no promised order,
// and again after a response that is not a 2xx, for three days
// (docs.stripe.com/webhooks).
type Webhooks struct {
	Server *Server
	URL    string // of the endpoint
	Secret string // that signs its requests
	// Deliveries returns how long after an event each of its deliveries is sent. An event
	// without deliveries is lost. A nil function sends each event once, at once.
	Deliveries func(Event) []time.Duration
	// Now is the time of signatures, for receivers whose clock Advance does not move. nil
	// means the server's.
	Now func() time.Time
	// Observe, if set, is called after each request to the endpoint, outside of locks and
	// from several goroutines. Idle is false meanwhile.
	Observe func(Sent)

	mu      sync.Mutex
	taken   int // events of the server that are in waiting or were sent
	waiting []delivery
	sending int
	sent    []Sent
}

// Sent is one request to the endpoint.
type Sent struct {
	Event  Event
	At     time.Time
	Status int // 0 if no response came
}

// delivery is one delivery of an event, until the endpoint accepts it.
type delivery struct {
	event        Event
	created, due time.Time
	tries        int
}

// Stripe does not say when it retries; it does for up to three days "with an exponential
// back off".
const (
	firstRetry = time.Minute
	lastRetry  = 72 * time.Hour
)

// maxSending bounds the connections at once, when Advance makes thousands of retries due.
const maxSending = 64

// Retry returns when an event is sent again after its nth failed delivery, and false if
// Stripe gives up.
func Retry(created, now time.Time, n int) (due time.Time, again bool) {
	due = now.Add(firstRetry << min(n-1, 12))
	return due, due.Sub(created) <= lastRetry
}

// Run sends events until the context ends. Its clock is the server's, so Advance makes
// retries due.
func (w *Webhooks) Run(ctx context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	slots := make(chan struct{}, maxSending)
	for {
		for _, d := range w.due() {
			sending.Go(func() {
				slots <- struct{}{}
				w.send(ctx, d)
				<-slots
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Idle reports whether every event was delivered, or waits for a later time.
func (w *Webhooks) Idle() bool {
	now := w.Server.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(now)
	due := func(d delivery) bool { return !d.due.After(now) }
	return w.sending == 0 && !slices.ContainsFunc(w.waiting, due)
}

// Sent returns the requests so far.
func (w *Webhooks) Sent() []Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *Webhooks) due() (due []delivery) {
	now := w.Server.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(now)
	w.waiting = slices.DeleteFunc(w.waiting, func(d delivery) bool {
		if d.due.After(now) {
			return false
		}
		due = append(due, d)
		return true
	})
	w.sending += len(due)
	return due
}

func (w *Webhooks) take(now time.Time) {
	var events []Event
	w.Server.Machine(func(m *Machine) { events = m.Events() })
	for _, e := range events[w.taken:] {
		delays := []time.Duration{0}
		if w.Deliveries != nil {
			delays = w.Deliveries(e)
		}
		for _, delay := range delays {
			w.waiting = append(w.waiting, delivery{event: e, created: now, due: now.Add(delay)})
		}
	}
	w.taken = len(events)
}

func (w *Webhooks) send(ctx context.Context, d delivery) {
	sent := Sent{Event: d.event, At: w.Server.Now()}
	signed := sent.At
	if w.Now != nil {
		signed = w.Now()
	}
	sent.Status = w.post(ctx, d.event.Body(d.created), signed)
	if w.Observe != nil {
		w.Observe(sent)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending--
	w.sent = append(w.sent, sent)
	if sent.Status/100 == 2 {
		return
	}
	d.tries++
	due, again := Retry(d.created, sent.At, d.tries)
	if d.due = due; again {
		w.waiting = append(w.waiting, d)
	}
}

func (w *Webhooks) post(ctx context.Context, body []byte, at time.Time) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Stripe-Signature", Signature(body, at, w.Secret))
	r.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode
}

// Signature returns the value of the Stripe-Signature header for a body, with one v1 for
// each secret: two for the day after one was rolled.
func Signature(body []byte, at time.Time, secrets ...string) string {
	parts := []string{"t=" + strconv.FormatInt(at.Unix(), 10)}
	for _, secret := range secrets {
		parts = append(parts, "v1="+hex.EncodeToString(webhook.ComputeSignature(at, body, secret)))
	}
	return strings.Join(parts, ",")
}
