package browser_test

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"orderonce/domain/order"
)

// lowContrast is a script whose value is a list of the texts of a page with a contrast
// under 4.5, the minimum of WCAG 2.2, level AA, for text of every size.
//
//go:embed contrast.js
var lowContrast string

// smallText is a script whose value is a list of the texts of a page that are too small:
// less than 13 px.
const smallText = `[...document.querySelectorAll("body *")].filter(e => e.checkVisibility() &&
	[...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim()) &&
	parseFloat(getComputedStyle(e).fontSize) < 13).map(e => e.outerHTML)`

func TestInABrowserTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	for read[string](t, p.tab, "document.activeElement.tagName") != "BUTTON" {
		p.keys(t, kb.Tab)
		if !read[bool](t, p.tab, `document.activeElement.matches(":focus-visible")`) {
			t.Fatal("the Tab key left the page before it reached a button")
		}
		if outline := read[string](t, p.tab, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("the focus is invisible on %s", read[string](t, p.tab, "document.activeElement.cloneNode().outerHTML"))
		}
	}
	if first := read[string](t, p.tab, "document.activeElement.dataset.attack"); first != "post" {
		t.Errorf("the first button is %q, want post", first)
	}
	p.keys(t, kb.Enter)
	const id = "LIVE-1"
	p.awaitLine(t, id, paid())
	button := fmt.Sprintf("document.querySelector('[data-order=%q] button')", id)
	read[*struct{}](t, p.tab, button+".focus()")
	p.keys(t, kb.Enter)
	p.await(t, fmt.Sprintf(`document.querySelector('dialog[data-timeline=%q][open] [data-entry]')`, id))
	p.keys(t, kb.Escape)
	p.await(t, `!document.querySelector("dialog[open]")`)
	p.await(t, "document.activeElement === "+button)
}

// TestInABrowserThePageFitsAPhone also has a visitor who prefers that nothing moves, and
// looks at each status in its column of a wide screen.
func TestInABrowserThePageFitsAPhone(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.prefer(t, "reduced-motion", "reduce")
	id := p.attack(t, "post").Order
	p.awaitLine(t, id, line{"place": "stripe"})
	if moving := read[[]string](t, p.tab, `document.getAnimations()
		.filter(a => a.effect.getComputedTiming().endTime > 1).map(a => a.effect.target.outerHTML)`); len(moving) > 0 {
		t.Errorf("animated: %q", moving)
	}
	p.awaitLine(t, id, paid())
	for _, status := range order.Statuses() {
		if !read[bool](t, p.tab, fmt.Sprintf(`(cell => {
			cell.firstElementChild.textContent = "↶ " + %q.replaceAll("_", " ");
			return cell.firstElementChild.offsetWidth <= cell.clientWidth;
		})(document.querySelector("[data-order] .status"))`, status)) {
			t.Errorf("%s is cut", status)
		}
	}
	p.resize(t, 390, 844)
	p.awaitLine(t, p.attack(t, "post").Order, paid())
	if n := read[int](t, p.tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
		t.Errorf("the page is %d px wider than the screen", n)
	}
	for _, outside := range read[[]string](t, p.tab, `[...document.querySelectorAll("button, #answer [data-chip]")]
		.filter(b => b.checkVisibility() && b.getBoundingClientRect().right > innerWidth).map(b => b.outerHTML)`) {
		t.Errorf("outside of the screen: %s", outside)
	}
}
