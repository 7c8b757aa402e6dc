package browser_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// maxPicture is the size of a picture in the documents, in bytes.
const maxPicture = 200 << 10

// TestInABrowserThePicturesOfTheDocumentsCanBeTaken takes them, and keeps them in the
// folder SCREENSHOTS if that is set.
func TestInABrowserThePicturesOfTheDocumentsCanBeTaken(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	folder := cmp.Or(os.Getenv("SCREENSHOTS"), t.TempDir())
	take := func(name string) { p.take(t, filepath.Join(folder, "console-"+name+".png")) }

	killed := p.scene(t)
	take("light")
	p.prefer(t, "color-scheme", "dark")
	take("dark")
	p.prefer(t, "color-scheme", "light")
	p.awaitQuiet(t)
	p.openTimeline(t, killed)
	take("order")
	p.keys(t, kb.Escape)
	p.resize(t, 390, 844)
	take("phone")
	p.resize(t, 1440, 900)
	p.change(t, `button[data-guard="bind"]`)
	p.awaitLine(t, p.attack(t, withoutBind).Order, line{"charges": "2"})
	take("charged-twice")
}

// scene lets something of everything happen: orders that were charged, one of which was
// killed and recovered, one that waits for its customer, a dead letter, and an order that
// is being processed when it returns. It returns the killed order.
func (p page) scene(t *testing.T) (killed string) {
	t.Helper()
	p.slowSteps(t, false)
	p.awaitLine(t, p.attack(t, "ten").Order, paid())
	killed = p.attack(t, "kill-after-yes").Order
	p.awaitLine(t, p.attack(t, "conflict").Order, line{"status": "paid"})
	p.awaitLine(t, p.attack(t, "action").Order, line{"status": "action_required"})
	p.awaitLine(t, killed, paid())
	p.slowSteps(t, true)
	p.awaitLine(t, p.attack(t, "kill-after-yes").Order, line{"message": "in_flight", "charges": "1"})
	p.awaitLine(t, p.attack(t, "post").Order, line{"place": "stripe"})
	return killed
}

// openTimeline opens the dialog of an order, with its sequence diagram.
func (p page) openTimeline(t *testing.T, id string) {
	t.Helper()
	p.press(t, fmt.Sprintf(`button:is([data-order=%[1]q], [data-order=%[1]q] *, :has([data-order=%[1]q]))`, id))
	p.await(t, fmt.Sprintf(`document.querySelector('dialog[data-timeline=%q][open] svg[data-sequence]')`, id))
}

// take writes what the screen shows into a PNG file.
func (p page) take(t *testing.T, name string) {
	t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > maxPicture {
		t.Errorf("%s has %d bytes, want at most %d", name, len(picture), maxPicture)
	}
	if err := os.WriteFile(name, picture, 0o644); err != nil { //nolint:gosec // the documents show it
		t.Fatal(err)
	}
}
