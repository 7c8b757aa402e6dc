package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"orderonce/scripts/lab/storm/play"
)

// bar shows a person the progress of the storms with live counters, and a file a line for each storm every ten seconds.
type bar struct {
	file     *os.File
	terminal bool
	now      func() time.Time

	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	total map[string]play.Progress
	told  map[string]time.Time
}

func newBar(file *os.File) *bar {
	info, err := file.Stat()
	return &bar{
		file: file, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, now: time.Now,
		total: map[string]play.Progress{}, told: map[string]time.Time{},
	}
}

// of returns what one storm reports to.
func (b *bar) of(name string) func(play.Progress) {
	return func(p play.Progress) {
		b.mu.Lock()
		defer b.mu.Unlock()
		text := fmt.Sprintf("%s, %s: %d deliveries, %d kills, %d faults, %d wait", name, p.Phase, p.Deliveries, p.Kills, p.Faults, p.Waiting)
		if b.terminal {
			b.draw(name, text, p)
		} else if now := b.now(); now.Sub(b.told[name]) >= 10*time.Second {
			b.told[name] = now
			fmt.Fprintf(b.file, "%d of %d messages done; %s\n", p.Done, p.Total, text)
		}
	}
}

// draw adds up the storms that run or ran.
func (b *bar) draw(name, text string, p play.Progress) {
	b.total[name] = p
	done, total := 0, 0
	for _, p := range b.total {
		done, total = done+p.Done, total+p.Total
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(b.file), progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	b.bar.ChangeMax(total)
	b.bar.Describe(text)
	_ = b.bar.Set(max(0, done)) // a bar that cannot be drawn is no reason to end
}

func (b *bar) end() error {
	if b.bar == nil {
		return nil
	}
	return b.bar.Clear()
}
