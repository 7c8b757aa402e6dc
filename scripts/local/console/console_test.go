package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system/systemtest"
)

const token = "a-token"

type acts struct {
	asked []string
	err   error
}

func (a *acts) act(_ context.Context, name, value string) (console.Result, error) {
	if name == "none" {
		return console.Result{}, fmt.Errorf("attack %q: %w", name, console.ErrUnknown)
	}
	a.asked = append(a.asked, name+" "+value)
	return console.Result{Text: "done", Order: "LIVE-1"}, a.err
}

func options(a *acts) console.Options {
	return console.Options{
		Token: token, Act: a.act, Picture: func() (watch.Picture, uint64) { return watch.Picture{}, 1 },
		Timeline: func(order string) (watch.Timeline, bool) {
			return watch.Timeline{Order: watch.Order{ID: order}}, order == "LIVE-1"
		},
		Attacks: []console.Group{
			{Name: "Post", Attacks: []console.Attack{
				{Name: "post", Title: "Post an order", Expect: "It is charged once."},
				{Name: "twice", Title: "Post it twice", Expect: "It's charged <once>."},
			}},
			{Name: "Cards", Attacks: []console.Attack{
				{Name: "declined", Title: "A declined card", Expect: "It is not charged."},
			}},
		},
		Guards: []console.Guard{{
			Name: "bind", Title: "Bind the intent", Missing: "the write of the intent",
			Breaks: "A second attempt charges again.", Attack: "post",
		}},
	}
}

// call returns what the handler answers to a request of a path, as the page sends it: a
// POST if there is a form.
func call(t *testing.T, o console.Options, path string, form url.Values, change func(*http.Request)) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:12113"+path, nil)
	if form != nil {
		r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(form.Encode()))
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Console-Token", token)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	handler, err := console.NewHandler(o)
	systemtest.Must(t, err)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if policy := w.Header().Get("Content-Security-Policy"); w.Code != http.StatusForbidden &&
		(!strings.Contains(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe")) {
		t.Errorf("%s: got the policy %q, want nothing inline and nothing unsafe", path, policy)
	}
	return w.Code, w.Body.String()
}

func TestThePageChangesTheSystem(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`200 {"text":"done","order":"LIVE-1"}`:                       nil,
		`409 {"error":"redrive: not possible now: no dead letters"}`: fmt.Errorf("redrive: %w: no dead letters", console.ErrNotNow),
		`500 {"error":"the compiler failed"}`:                        errors.New("the compiler failed"),
	} {
		a := &acts{err: err}
		status, body := call(t, options(a), "/acts/guard", url.Values{"value": {"bind"}}, nil)
		if got := fmt.Sprint(status, " ", body); got != want || !cmp.Equal(a.asked, []string{"guard bind"}) {
			t.Errorf("got %s and %q, want %s and guard bind", got, a.asked, want)
		}
	}
}

func TestARefusedRequestChangesNothing(t *testing.T) {
	t.Parallel()
	if _, err := console.NewHandler(console.Options{}); err == nil {
		t.Error("without a token: got no error, want one: every request would have the right one")
	}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		change func(*http.Request)
		status int
		want   string
	}{
		"of another origin":               {"/acts/post", url.Values{}, set("Sec-Fetch-Site", "cross-site"), 403, "another origin"},
		"of another port of this machine": {"/acts/post", url.Values{}, set("Sec-Fetch-Site", "same-site"), 403, "another origin"},
		"of another origin in an old browser": {"/acts/post", url.Values{}, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://example.com")
		}, 403, "another origin"},
		"without a token":      {"/acts/post", url.Values{}, set("X-Console-Token", ""), 403, "wrong token"},
		"with a wrong token":   {"/acts/post", url.Values{}, set("X-Console-Token", "b"), 403, "wrong token"},
		"for a foreign name":   {"/acts/post", url.Values{}, foreign, 403, "host: want"},
		"to read the page":     {"/", nil, foreign, 403, "host: want"},
		"to read the feed":     {"/feed", nil, foreign, 403, "host: want"},
		"to read an order":     {"/orders/LIVE-1", nil, foreign, 403, "host: want"},
		"of an unknown order":  {"/orders/none", nil, nil, 404, `order \"none\": not found`},
		"of an unknown attack": {"/acts/none", url.Values{}, nil, 404, `attack \"none\": not found`},
		"with a large body":    {"/acts/slow", url.Values{"value": {strings.Repeat("1", 2000)}}, nil, 400, "too large"},
	} {
		a := &acts{}
		status, body := call(t, options(a), c.path, c.form, c.change)
		if status != c.status || !strings.Contains(body, c.want) || !json.Valid([]byte(body)) || len(a.asked) > 0 {
			t.Errorf("%s: got %d %s and %q, want %d, %q and no change", name, status, body, a.asked, c.status, c.want)
		}
	}
}

func foreign(r *http.Request) { r.Host = "rebound.example.com:12113" }

func TestThePageAndItsModule(t *testing.T) {
	t.Parallel()
	_, page := call(t, options(&acts{}), "/", nil, nil)
	_, module := call(t, options(&acts{}), "/console.js", nil, nil)
	for _, inline := range []string{`<style`, `<script[^>]*>[^<]`, `\sstyle=`, `\son\w+=`, `javascript:`, `https?://`} {
		if got := regexp.MustCompile(inline).FindString(page); got != "" {
			t.Errorf("page has %q: the policy refuses it, or it does not work offline", got)
		}
	}
	for _, unsafe := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "import "} {
		if strings.Contains(module, unsafe) {
			t.Errorf("module has %q: text from the system could become part of the page", unsafe)
		}
	}
	for _, found := range regexp.MustCompile(`(?:byId|getElementById)\("([a-z-]+)"\)`).FindAllStringSubmatch(module, -1) {
		if id := found[1]; !strings.Contains(page, ` id="`+id+`"`) {
			t.Errorf("page has no id %q", id)
		}
	}
	for _, want := range []string{
		`<button type="button" data-attack="post" aria-describedby="expect-post">Post an order</button>`,
		`<p id="expect-post">It is charged once.</p>`,
		`<p id="expect-twice">It&#39;s charged &lt;once&gt;.</p>`,
		`<button type="button" data-attack="declined" aria-describedby="expect-declined">A declined card</button>`,
		`<li data-without="bind" data-shown-by="post">`,
		`<button type="button" data-guard="bind" aria-describedby="missing-bind">Bind the intent</button>`,
		`Missing: the write of the intent. A second attempt charges again.`,
		`<meta name="console-token" content="a-token">`, `>Post</h3>`, `>Cards</h3>`,
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("page lacks %s", want)
		}
	}
	_, timeline := call(t, options(&acts{}), "/orders/LIVE-1", nil, nil)
	if !strings.Contains(timeline, `"entries":[]`) {
		t.Errorf("got %s, want a list of entries", timeline)
	}
}

func TestAFollowerGetsThePictures(t *testing.T) {
	t.Parallel()
	o := options(&acts{})
	var waiting atomic.Int64
	o.Picture = func() (watch.Picture, uint64) {
		n := waiting.Load()
		return watch.Picture{Queue: watch.Queue{Waiting: int(n)}}, uint64(n + 1)
	}
	s, err := console.Serve(o)
	systemtest.Must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	_, page := call(t, o, "/", nil, nil)
	run := regexp.MustCompile(`name="console-run" content="(\w+)"`).FindStringSubmatch(page)
	if run == nil || strings.Contains(run[1], token) {
		t.Fatalf("got %q, want a run that does not show the token", run)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/feed?run="+run[1], nil)
	systemtest.Must(t, err)
	response, err := http.DefaultClient.Do(r)
	systemtest.Must(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got %q, want an event stream", got)
	}
	lines := bufio.NewScanner(response.Body)
	for want := 1; want <= 3; want++ {
		waiting.Store(int64(want))
		for got := 0; got != want; {
			if !lines.Scan() {
				t.Fatalf("the feed ended before picture %d: %v", want, lines.Err())
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var picture watch.Picture
				err = errors.Join(err, json.Unmarshal([]byte(data), &picture))
				got = picture.Queue.Waiting
			}
		}
	}
	if err != nil {
		t.Error(err)
	}
	if status, _ := call(t, o, "/feed?run=earlier", nil, nil); status != http.StatusNoContent { // ends an EventSource
		t.Errorf("a follower of an earlier start: got %d, want 204", status)
	}
}

type recorder struct {
	*httptest.ResponseRecorder

	flushed int
}

func (r *recorder) Flush() { r.flushed++ }

func TestASilentFeedSendsAComment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler, err := console.NewHandler(options(&acts{}))
		systemtest.Must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second) // time for two
		defer cancel()
		w := &recorder{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/feed", nil)
		handler.ServeHTTP(w, r)
		if got := strings.Count(w.Body.String(), ": no news\n\n"); got != 2 || w.flushed != 3 {
			t.Errorf("got %d comments and %d flushes, want 2, and one more for the picture", got, w.flushed)
		}
	})
}
