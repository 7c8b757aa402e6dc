package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestInABrowserNobodyElseCanChangeTheSystem(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	token := read[string](t, p.tab, `document.querySelector('meta[name="console-token"]').content`)
	p.postFromElsewhere(t, token)
	p.load(t)
	if n := p.count(t, "orders"); n != 0 {
		t.Errorf("%d orders were posted, want none", n)
	}
	p.search(t)
}

// postFromElsewhere opens a page of another origin, which posts an order: with the token,
// and without it as a form may.
func (p page) postFromElsewhere(t *testing.T, token string) {
	t.Helper()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer elsewhere.Close()
	p.do(t, chromedp.Navigate(elsewhere.URL))
	for _, options := range []string{fmt.Sprintf(`{headers: {"X-Console-Token": %q}}`, token), `{mode: "no-cors"}`} {
		p.do(t, chromedp.Evaluate[chromedp.Void](
			fmt.Sprintf(`fetch(%q, {method: "POST", ...%s}).catch(() => {})`, p.url+"/attacks/post", options),
			chromedp.EvalAwaitPromise,
		))
	}
	p.complaints(t) // the browser's, about a page that is not ours
}

func TestInABrowserNoScriptRunsThatIsNotThePages(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	response := p.get(t, "/")
	_ = response.Body.Close() // the headers are enough
	policy := response.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("Content-Security-Policy %q, want default-src 'none' and nothing unsafe", policy)
	}
	p.search(t)
	blocked := read[int](t, p.tab, `[
		() => document.body.append(Object.assign(document.createElement("script"), {textContent: "injected = true"})),
		() => document.body.append(Object.assign(document.createElement("script"), {src: "data:,injected = true"})),
		() => document.body.innerHTML += "<img src='missing' onerror='injected = true'>",
		() => document.body.setAttribute("onclick", "injected = true"),
		() => document.body.setAttribute("style", "background: url(https://other.example/)"),
	].map(inject => { try { inject() } catch {} }).length`)
	p.press(t, "body")
	if read[bool](t, p.tab, "Boolean(window.injected)") {
		t.Error("an injected script ran")
	}
	if all := p.complaints(t); len(all) != blocked {
		t.Errorf("the browser complains %q, want about each of %d injections", all, blocked)
	}
}
