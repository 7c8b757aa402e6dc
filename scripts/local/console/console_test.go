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
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
)

const token = "a-token"

// actions notes what is asked for.
type actions struct {
	asked []string
	err   error
}

func (a *actions) note(format string, args ...any) (console.Result, error) {
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
	return console.Result{Text: "done", Order: "LIVE-1"}, a.err
}

func (a *actions) Attack(_ context.Context, name string) (console.Result, error) {
	return a.note("attack %s", name)
}

func (a *actions) Guard(_ context.Context, name string) (console.Result, error) {
	return a.note("guard %q", name)
}

func (a *actions) Storm(_ context.Context, on bool, seed uint64) (console.Result, error) {
	return a.note("storm %t %d", on, seed)
}

func (a *actions) Pace(_ context.Context, slow bool) (console.Result, error) {
	return a.note("pace %t", slow)
}

func options(a *actions) console.Options {
	return console.Options{
		Token: token, Actions: a, Feed: watch.NewFeed(func() watch.Frame { return watch.Frame{} }),
		Timeline: func(order string) (watch.Timeline, bool) {
			return watch.Timeline{Order: watch.Order{ID: order}}, order == "LIVE-1"
		},
		Attacks: []console.Attack{
			{Name: "post", Title: "Post an order", Expect: "It is charged once.", Group: "Post"},
			{Name: "twice", Title: "Post it twice", Expect: "It's charged <once>.", Group: "Post"},
			{Name: "declined", Title: "A declined card", Expect: "It is not charged.", Group: "Cards"},
		},
		Guards: []console.Guard{{
			Name: "bind", Title: "Bind the intent", Missing: "the write of the intent",
			Breaks: "A second attempt charges again.", Attack: "post",
		}},
	}
}

func serve(t *testing.T, o console.Options) *console.Server {
	t.Helper()
	s, err := console.Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// response is what the server answered.
type response struct {
	Status int
	Header http.Header
	Body   string
}

// send sends a request and returns its response.
func send(t *testing.T, r *http.Request) response {
	t.Helper()
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, string(body)}
}

func get(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// post returns a request as the page sends it.
func post(t *testing.T, address string, form url.Values) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Console-Token", token)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func TestThePageChangesTheSystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, want string
		form       url.Values
	}{
		"an attack":               {"/attacks/post", "attack post", nil},
		"a guard is removed":      {"/guards", `guard "bind"`, url.Values{"name": {"bind"}}},
		"the guards are put back": {"/guards", `guard ""`, url.Values{"name": {""}}},
		"a storm begins":          {"/storm", "storm true 7", url.Values{"on": {"true"}, "seed": {"7"}}},
		"a storm ends":            {"/storm", "storm false 0", url.Values{"on": {"false"}}},
		"the pace changes":        {"/pace", "pace true", url.Values{"slow": {"true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &actions{}
			got := send(t, post(t, serve(t, options(a)).URL+c.path, c.form))
			if got.Status != http.StatusOK || got.Body != `{"text":"done","order":"LIVE-1"}` {
				t.Errorf("got %d %s", got.Status, got.Body)
			}
			if diff := cmp.Diff([]string{c.want}, a.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARefusedRequestChangesNothing(t *testing.T) {
	t.Parallel()
	o := options(&actions{})
	o.Token = ""
	if _, err := console.Serve(o); err == nil {
		t.Error("without a token: got no error, want one: every request would have the right one")
	}
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		change func(*http.Request)
		status int
		want   string
	}{
		"of another origin": {
			"/attacks/post", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "another origin",
		},
		"of another port of this machine": {
			"/attacks/post", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403, "another origin",
		},
		"of another origin in an old browser": {"/attacks/post", nil, func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://example.com")
		}, 403, "another origin"},
		"without a token": {
			"/attacks/post", nil, func(r *http.Request) { r.Header.Del("X-Console-Token") }, 403, "wrong token",
		},
		"with a wrong token": {
			"/attacks/post", nil, func(r *http.Request) { r.Header.Set("X-Console-Token", "b") }, 403, "wrong token",
		},
		"for a foreign name": {
			"/attacks/post", nil, func(r *http.Request) { r.Host = "rebound.example.com:12113" }, 403, "host: want",
		},
		"of an unknown attack": {"/attacks/none", nil, nil, 404, `attack \"none\": not found`},
		"of an unknown guard":  {"/guards", url.Values{"name": {"none"}}, nil, 404, `guard \"none\": not found`},
		"storm without a seed": {"/storm", url.Values{"on": {"true"}}, nil, 400, "seed: want a whole number"},
		"storm without on":     {"/storm", url.Values{"seed": {"7"}}, nil, 400, "on: want true or false"},
		"pace without slow":    {"/pace", nil, nil, 400, "slow: want true or false"},
		"with a large body":    {"/pace", url.Values{"slow": {strings.Repeat("1", 2000)}}, nil, 400, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &actions{}
			r := post(t, serve(t, options(a)).URL+c.path, c.form)
			if c.change != nil {
				c.change(r)
			}
			got := send(t, r)
			if got.Status != c.status || !strings.Contains(got.Body, c.want) || !json.Valid([]byte(got.Body)) {
				t.Errorf("got %d %s, want %d and %q", got.Status, got.Body, c.status, c.want)
			}
			if len(a.asked) > 0 {
				t.Errorf("got %q, want no change", a.asked)
			}
		})
	}
}

func TestAnErrorOfAnActionIsShown(t *testing.T) {
	t.Parallel()
	for status, err := range map[int]error{
		http.StatusConflict:            fmt.Errorf("redrive: %w: there are no dead letters", console.ErrNotNow),
		http.StatusInternalServerError: errors.New("the compiler failed"),
	} {
		s := serve(t, options(&actions{err: err}))
		got := send(t, post(t, s.URL+"/attacks/post", nil))
		if want := fmt.Sprintf(`{"error":%q}`, err); got.Status != status || got.Body != want {
			t.Errorf("got %d %s, want %d %s", got.Status, got.Body, status, want)
		}
	}
}

func TestAForeignNameReadsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, options(&actions{}))
	for _, path := range []string{"/", "/feed", "/orders/LIVE-1"} {
		r := get(t, s.URL+path)
		r.Host = "rebound.example.com"
		if got := send(t, r); got.Status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", path, got.Status)
		}
	}
}

func TestThePolicyAllowsNothingInline(t *testing.T) {
	t.Parallel()
	s := serve(t, options(&actions{}))
	page := send(t, get(t, s.URL))
	policy := page.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	} {
		if !strings.Contains(policy, want+";") {
			t.Errorf("policy %q: want %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q: want nothing unsafe", policy)
	}
	for _, inline := range []string{`<style`, `<script[^>]*>[^<]`, `\sstyle=`, `\son\w+=`, `javascript:`, `https?://`} {
		if got := regexp.MustCompile(inline).FindString(page.Body); got != "" {
			t.Errorf("page has %q: the policy refuses it, or it does not work offline", got)
		}
	}
	module := send(t, get(t, s.URL+"/console.js")).Body
	for _, unsafe := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "import "} {
		if strings.Contains(module, unsafe) {
			t.Errorf("module has %q: text from the system could become part of the page", unsafe)
		}
	}
}

func TestEachButtonHasATitleAndASentence(t *testing.T) {
	t.Parallel()
	page := send(t, get(t, serve(t, options(&actions{})).URL)).Body
	for _, want := range []string{
		`<button type="button" data-attack="post" aria-describedby="expect-post">Post an order</button>`,
		`<p id="expect-post">It is charged once.</p>`,
		`<p id="expect-twice">It&#39;s charged &lt;once&gt;.</p>`,
		`<button type="button" data-attack="declined" aria-describedby="expect-declined">A declined card</button>`,
		`<li data-without="bind" data-shown-by="post">`,
		`<button type="button" data-guard="bind" aria-describedby="missing-bind">Bind the intent</button>`,
		`Missing: the write of the intent. A second attempt charges again.`,
		`<meta name="console-token" content="a-token">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %s", want)
		}
	}
	for heading, want := range map[string]int{">Post</h3>": 1, ">Cards</h3>": 1} {
		if got := strings.Count(page, heading); got != want {
			t.Errorf("got %s %d times, want %d", heading, got, want)
		}
	}
}

func TestEachNameThatTheModuleUsesIsInThePage(t *testing.T) {
	t.Parallel()
	s := serve(t, options(&actions{}))
	page := send(t, get(t, s.URL)).Body
	module := send(t, get(t, s.URL+"/console.js")).Body
	for _, found := range regexp.MustCompile(`(?:byId|getElementById)\("([a-z-]+)"\)`).FindAllStringSubmatch(module, -1) {
		if id := found[1]; !strings.Contains(page, ` id="`+id+`"`) {
			t.Errorf("page has no id %q", id)
		}
	}
}

func TestATimelineIsJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, options(&actions{}))
	body := send(t, get(t, s.URL+"/orders/LIVE-1")).Body
	var timeline watch.Timeline
	if err := json.Unmarshal([]byte(body), &timeline); err != nil || timeline.Order.ID != "LIVE-1" {
		t.Errorf("got %s, %v", body, err)
	}
	if !strings.Contains(body, `"entries":[]`) {
		t.Errorf("got %s, want a list of entries", body)
	}
	got := send(t, get(t, s.URL+"/orders/none"))
	if got.Status != http.StatusNotFound || got.Body != `{"error":"order \"none\": not found"}` {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

// event is one event of a feed.
type event struct {
	ID     string
	Frames []watch.Frame
}

// follow returns a function that waits for the next event of the feed after the given id.
func follow(t *testing.T, address, last string) (next func() event) {
	t.Helper()
	r := get(t, address)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("got %q", got)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<22)
	return func() (e event) {
		t.Helper()
		for lines.Scan() && lines.Text() != "" {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.ID = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.Frames); err != nil {
					t.Fatal(err)
				}
			}
		}
		return e
	}
}

// say publishes a line of the log.
func say(f *watch.Feed, n int) {
	f.Publish(func() (watch.Frame, bool) { return watch.Frame{Log: []watch.Line{{N: n}}}, true })
}

func TestAFollowerResumesAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	o := options(&actions{})
	s := serve(t, o)
	seen := follow(t, s.URL+"/feed", "")()
	say(o.Feed, 1)
	say(o.Feed, 2)
	want := []watch.Frame{{Log: []watch.Line{{N: 1}}}, {Log: []watch.Line{{N: 2}}}}
	if diff := cmp.Diff(want, follow(t, s.URL+"/feed", seen.ID)().Frames); diff != "" {
		t.Error(diff)
	}
}

func TestAFollowerOfAnEarlierStartEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, options(&actions{}))
	got := send(t, get(t, s.URL+"/feed?run=earlier"))
	if got.Status != http.StatusNoContent { // the status that ends an EventSource
		t.Errorf("got %d, want 204", got.Status)
	}
	page := send(t, get(t, s.URL)).Body
	run := regexp.MustCompile(`name="console-run" content="(\w+)"`).FindStringSubmatch(page)
	if run == nil || strings.Contains(run[1], token) {
		t.Fatalf("got %q, want a run that does not show the token", run)
	}
	follow(t, s.URL+"/feed?run="+run[1], "")()
}

// recorder is a response that counts what was flushed.
type recorder struct {
	*httptest.ResponseRecorder

	flushed int
}

func (r *recorder) Flush() { r.flushed++ }

func TestASilentFeedSendsAComment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handler, err := console.NewHandler(options(&actions{}))
		if err != nil {
			t.Fatal(err)
		}
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
