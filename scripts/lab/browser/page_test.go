package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// page is the live page in a tab, with the system that it shows.
type page struct {
	*tab
	*local
}

// openPage starts a system and opens its page. The caller defers search.
func openPage(t *testing.T) page {
	t.Helper()
	p := page{openTab(t), startLocal(t)}
	p.load(t)
	return p
}

func (p page) load(t *testing.T) {
	t.Helper()
	p.do(t, chromedp.Navigate(p.url))
	p.await(t, `document.body.dataset.connected === "true"`)
}

// search fails the test if the browser has complained, or if the page or a timeline has
// personal data or a key.
func (p page) search(t *testing.T) {
	t.Helper()
	for _, complaint := range p.complaints(t) {
		t.Errorf("the browser complains: %s", complaint)
	}
	texts := map[string]string{"the page": read[string](t, p.tab, "document.documentElement.outerHTML")}
	for _, id := range p.orders(t) {
		texts["the timeline of "+id] = p.text(t, "/orders/"+id)
	}
	for where, text := range texts {
		if found := private.FindStringIndex(text); found != nil {
			t.Errorf("%s has %q", where, text[max(0, found[0]-50):min(len(text), found[1]+50)])
		}
	}
}

func (s *local) text(t *testing.T, path string) string {
	t.Helper()
	response := s.get(t, path)
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v: %s", path, response.Status, err, body)
	}
	return string(body)
}

type did struct{ Text, Order string }

// change presses a button that changes the system, and returns what the page is told once
// that is done.
func (p page) change(t *testing.T, button string) (done did) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	response, err := chromedp.Run(ctx, chromedp.WaitEvent(
		network.ResponseReceived,
		func(e network.EventResponseReceived) bool { return strings.HasPrefix(e.Response.URL, p.url+"/acts/") },
		chromedp.Click(chromedp.CSS(button), chromedp.NodeEnabled),
	))
	if err != nil {
		t.Fatalf("press %s: %v", button, err)
	}
	var body []byte
	p.eventually(t, func() string { // the body follows the headers
		answer, err := chromedp.Call(ctx, network.GetResponseBody, network.GetResponseBodyParams{
			RequestID: response.RequestID,
		})
		if body = answer.Body; err != nil || len(body) == 0 {
			return fmt.Sprintf("%s: no body: %v", response.Response.URL, err)
		}
		return ""
	})
	if err := json.Unmarshal(body, &done); err != nil || response.Response.Status != http.StatusOK {
		t.Fatalf("press %s: %d, %v: %s", button, response.Response.Status, err, body)
	}
	return done
}

// attack presses the button of an attack, and waits until the page's log says what was
// done.
func (p page) attack(t *testing.T, name string) did {
	t.Helper()
	done := p.change(t, fmt.Sprintf("button[data-attack=%q]", name))
	p.await(t, fmt.Sprintf("[...document.querySelectorAll('[data-line]')].some(l => l.textContent.includes(%q))", done.Text))
	return done
}

// line is an order's line in the page: the data attributes of its element.
type line map[string]string

func (p page) line(t *testing.T, id string) line {
	t.Helper()
	return read[line](t, p.tab, fmt.Sprintf(`({...document.querySelector('[data-order=%q]')?.dataset})`, id))
}

func (p page) awaitLine(t *testing.T, id string, want line) {
	t.Helper()
	p.eventually(t, func() string {
		got, part := p.line(t, id), line{}
		for name := range want {
			part[name] = got[name]
		}
		return cmp.Diff(part, want) // - got, + want
	})
}

func (p page) orders(t *testing.T) []string {
	t.Helper()
	return read[[]string](t, p.tab, "[...document.querySelectorAll('[data-order]')].map(e => e.dataset.order)")
}

// count returns one of the page's numbers, such as "queue.waiting".
func (p page) count(t *testing.T, name string) int {
	t.Helper()
	text := read[string](t, p.tab, fmt.Sprintf("document.querySelector('[data-count=%q]').textContent", name))
	n, err := strconv.Atoi(regexp.MustCompile(`\D`).ReplaceAllString(text, "")) // 1,000 is 1000
	if err != nil {
		t.Fatalf("count %s: %q is not a number", name, text)
	}
	return n
}

func (p page) awaitQuiet(t *testing.T) {
	t.Helper()
	p.eventually(t, func() string {
		if n := p.count(t, "queue.waiting") + p.count(t, "queue.inFlight"); n > 0 {
			return fmt.Sprintf("messages in the queue: %d", n)
		}
		return read[string](t, p.tab, `document.querySelector('[data-state="working"], [data-state="frozen"]')?.outerHTML ?? ""`)
	})
}

// books are what the page, the table, Stripe and SQS must agree on.
type books struct {
	Status  map[string]string // of the rows
	Charges map[string]int    // of the orders that were charged
	Total   int               // of all charges
	Twice   int               // orders with more than one
	Dead    int               // dead letters
}

// compare waits until the page agrees with the table, with Stripe's ledger and with the
// dead-letter queue about every order that it shows.
func (p page) compare(t *testing.T) {
	t.Helper()
	p.eventually(t, func() string {
		recorded, err := p.recorded(t)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(p.shown(t), recorded) // - page, + system
	})
}

func (p page) shown(t *testing.T) books {
	t.Helper()
	b := books{Status: map[string]string{}, Charges: map[string]int{}}
	for _, id := range p.orders(t) {
		l := p.line(t, id)
		b.Status[id] = l["status"]
		if n, err := strconv.Atoi(l["charges"]); err != nil {
			t.Fatalf("order %s: data-charges: %v", id, err)
		} else if n > 0 {
			b.Charges[id] = n
		}
	}
	b.Total, b.Twice, b.Dead = p.count(t, "charges"), p.count(t, "twice"), p.count(t, "dead")
	return b
}

func (p page) recorded(t *testing.T) (books, error) {
	t.Helper()
	b := books{Status: map[string]string{}, Charges: map[string]int{}, Dead: p.deadLetters(t)}
	charges, err := p.charges(t)
	for _, n := range charges {
		b.Total += n
		b.Twice += min(n-1, 1)
	}
	for _, id := range p.orders(t) {
		b.Status[id] = p.status(t, id)
		if n := charges[id]; n > 0 {
			b.Charges[id] = n
		}
	}
	return b, err
}

func (p page) redLights(t *testing.T) string {
	t.Helper()
	return strings.Join(read[[]string](
		t, p.tab, `[...document.querySelectorAll('[data-light][data-ok="false"]')].map(e => e.dataset.light + ": " + e.textContent)`,
	), "\n")
}

// slowSteps switches the slow steps on or off. They are on at the start.
func (p page) slowSteps(t *testing.T, on bool) {
	t.Helper()
	const slow = `input[name="slow"]`
	p.await(t, fmt.Sprintf("document.querySelector('%s').checked === %t", slow, !on)) // the page shows what is set
	p.change(t, slow)
}

// pause lets the system run on. Nothing is expected to happen by its end.
func (p page) pause(t *testing.T, d time.Duration) {
	t.Helper()
	p.do(t, chromedp.Sleep(d))
}
