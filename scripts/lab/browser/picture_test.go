package browser_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"orderonce/scripts/local/system/systemtest"
)

// maxPicture is the size of a picture in the documents, in bytes.
const maxPicture = 200 << 10

// TestInABrowserThePicturesOfTheDocumentsCanBeTaken takes them, and keeps them in the
// folder SCREENSHOTS if that is set. Then it looks whether every text can be read.
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
	p.awaitLine(t, p.change(t, repeat).Order, line{"charges": "2"})
	take("charged-twice")
	for _, scheme := range []string{"light", "dark"} {
		p.prefer(t, "color-scheme", scheme)
		p.openTimeline(t, killed)
		for _, found := range append(read[[]string](t, p.tab, lowContrast), read[[]string](t, p.tab, smallText)...) {
			t.Errorf("%s: %s", scheme, found)
		}
		p.keys(t, kb.Escape)
	}
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

func (p page) openTimeline(t *testing.T, id string) {
	t.Helper()
	p.press(t, fmt.Sprintf("[data-order=%q] button", id))
	p.await(t, fmt.Sprintf(`document.querySelector('dialog[data-timeline=%q][open] [data-entry]')`, id))
}

// take writes what the screen shows, from the top of the page, into a PNG file.
func (p page) take(t *testing.T, name string) {
	t.Helper()
	p.do(t, chromedp.Evaluate[chromedp.Void]("scrollTo(0, 0)"))
	screen, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	systemtest.Must(t, err)
	picture, err := png.Decode(bytes.NewReader(screen))
	systemtest.Must(t, err)
	var file bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	systemtest.Must(t, encoder.Encode(&file, paletted(picture)))
	if file.Len() > maxPicture {
		t.Errorf("%s has %d bytes, want at most %d", name, file.Len(), maxPicture)
	}
	systemtest.Must(t, os.WriteFile(name, file.Bytes(), 0o644))
}

// paletted returns the picture in its 256 most frequent colors, which makes a much
// smaller file. The others are shades at the edges of letters, and get the nearest one.
func paletted(picture image.Image) *image.Paletted {
	const colors = 256
	bounds := picture.Bounds()
	pixels := map[color.Color]int{}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			pixels[picture.At(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(pixels), func(a, b color.Color) int { return pixels[b] - pixels[a] })
	small := image.NewPaletted(bounds, all[:min(len(all), colors)])
	index := map[color.Color]uint8{}
	for _, c := range all {
		index[c] = uint8(small.Palette.Index(c))
	}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			small.SetColorIndex(x, y, index[picture.At(x, y)])
		}
	}
	return small
}
