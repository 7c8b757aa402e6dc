package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows on a terminal how far a run is, and tells it every ten seconds elsewhere.
type bar struct {
	what  string
	total int
	out   io.Writer
	bar   *progressbar.ProgressBar
	told  time.Time
}

const tellEvery = 10 * time.Second

func newBar(out io.Writer, what string, total int) *bar {
	b := &bar{what: what, total: total, out: out, told: time.Now()}
	if file, ok := out.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			b.bar = progressbar.NewOptions(total, progressbar.OptionSetDescription(what), progressbar.OptionSetWriter(out),
				progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(30),
				progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
		}
	}
	return b
}

func (b *bar) set(done int) {
	if b.bar != nil {
		_ = b.bar.Set(min(done, b.total))
		return
	}
	if now := time.Now(); now.Sub(b.told) >= tellEvery {
		b.told = now
		_, _ = fmt.Fprintf(b.out, "%s: %d of %d\n", b.what, done, b.total)
	}
}

func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
