package browser_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system/systemtest"
)

// patience limits a single wait, also on a busy machine.
const patience = 2 * time.Minute

type tab struct {
	ctx     context.Context
	console func() (chromedp.ConsoleMessage, error, bool)
}

// openTab starts a Chromium with an empty profile. It skips the test unless
// ORDERONCE_ALL=1 and there is a Chromium; `make browser` counts a skip as a failure.
func openTab(t *testing.T) *tab {
	t.Helper()
	lambdatest.FullOnly(t)
	options := append(
		slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), // headless, and without a sandbox only for root
		chromedp.ExecPath(chromium(t)),
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	messages, stop := iter.Pull2(chromedp.Console(ctx))
	t.Cleanup(stop)
	tab := &tab{ctx, messages}
	tab.resize(t, 1440, 900)
	return tab
}

// chromium returns the path of a Chromium or a Chrome, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{os.Getenv("CHROMIUM"), "/usr/bin/chromium", "chromium", "google-chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium: apt-get install chromium, or set CHROMIUM to the path of a Chromium or a Chrome")
	return ""
}

func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	systemtest.Must(t, chromedp.Do(ctx, actions...))
}

// read returns the value of a JavaScript expression.
//
//nolint:ireturn // T is what the caller names
func read[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// await waits until a JavaScript expression is true. chromedp.Poll compiles a string in
// the page, which its Content-Security-Policy forbids.
func (b *tab) await(t *testing.T, condition string) {
	t.Helper()
	b.eventually(t, func() (problem string) {
		if read[bool](t, b, "Boolean("+condition+")") {
			return ""
		}
		return "not true: " + condition
	})
}

func (b *tab) eventually(t *testing.T, check func() (problem string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for problem := check(); problem != ""; problem = check() {
		if err := chromedp.Do(ctx, chromedp.Sleep(50*time.Millisecond)); err != nil {
			t.Fatalf("after %v: %s", patience, problem)
		}
	}
}

// press clicks an element, after it was scrolled into view.
func (b *tab) press(t *testing.T, selector string) {
	t.Helper()
	b.do(t, chromedp.Click(chromedp.CSS(selector), chromedp.NodeEnabled))
}

// keys presses keys one after the other, such as kb.Tab + kb.Enter.
func (b *tab) keys(t *testing.T, keys string) {
	t.Helper()
	b.do(t, chromedp.KeyEvent(keys))
}

func (b *tab) resize(t *testing.T, width, height int64) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(width, height))
}

// prefer emulates a preference of the visitor, such as color-scheme: dark.
func (b *tab) prefer(t *testing.T, feature, value string) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-" + feature, Value: value}},
	})
	systemtest.Must(t, err)
}

// complaints returns what the browser has complained about since the last call: errors
// and warnings of the console, exceptions, requests that failed, and violations of the
// Content-Security-Policy.
func (b *tab) complaints(t *testing.T) (all []string) {
	t.Helper()
	const last = "nothing follows"
	read[*struct{}](t, b, fmt.Sprintf("console.info(%q)", last))
	for {
		message, err, ok := b.console()
		if err != nil || !ok {
			t.Fatal("the console ended: ", cmp.Or(err, context.Cause(b.ctx)))
		}
		switch message.Type {
		case chromedp.ConsoleError, chromedp.ConsoleException, chromedp.ConsoleWarning:
			all = append(all, message.String())
		case chromedp.ConsoleInfo, chromedp.ConsoleLog, chromedp.ConsoleDebug:
			if message.Text == last {
				return all
			}
		}
	}
}
