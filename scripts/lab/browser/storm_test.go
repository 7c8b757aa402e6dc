package browser_test

import (
	"cmp"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"orderonce/scripts/local/system/systemtest"
)

// The limits of the page's memory, however long it is open.
const (
	maxHeap  = 8 << 20 // bytes in use after a garbage collection
	maxNodes = 6_000   // of the DOM, with those that are not collected yet
)

// TestInABrowserAStormNeitherGrowsThePageNorTurnsALightRed runs a storm for
// STORM_SECONDS, by default 20.
func TestInABrowserAStormNeitherGrowsThePageNorTurnsALightRed(t *testing.T) {
	t.Parallel()
	seconds, err := strconv.Atoi(cmp.Or(os.Getenv("STORM_SECONDS"), "20"))
	if err != nil {
		t.Fatalf("STORM_SECONDS: %v", err)
	}
	p := openPage(t)
	defer p.search(t)
	p.do(t, chromedp.SetValue(chromedp.CSS(`input[name="seed"]`), "7"))
	p.change(t, `button[data-storm="start"]`)
	for range seconds / 5 {
		p.pause(t, 5*time.Second)
		if heap, nodes := p.memory(t); heap > maxHeap || nodes > maxNodes {
			t.Errorf("after %d orders the page uses %d bytes and %d nodes, want at most %d and %d",
				p.count(t, "orders"), heap, nodes, maxHeap, maxNodes)
		}
		if red := p.redLights(t); red != "" {
			t.Fatalf("after %d orders, broken: %s", p.count(t, "orders"), red)
		}
	}
	p.change(t, `button[data-storm="stop"]`)
	p.awaitQuiet(t)
	p.compare(t)
	heap, nodes := p.memory(t)
	t.Logf("%d orders, %d kills: the page uses %d bytes and %d nodes", p.count(t, "orders"), p.count(t, "kills"), heap, nodes)
	if red := p.redLights(t); red != "" {
		t.Errorf("broken: %s", red)
	}
}

func (b *tab) memory(t *testing.T) (bytes, nodes int64) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
	systemtest.Must(t, err)
	heap, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	systemtest.Must(t, err)
	dom, err := chromedp.Call(b.ctx, memory.GetDOMCounters, cdp.Empty{})
	systemtest.Must(t, err)
	return int64(heap.UsedSize), dom.Nodes
}
