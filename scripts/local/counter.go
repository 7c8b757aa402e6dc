package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// counter shows progress in one line of a terminal, which it overwrites. Without a writer
// it shows nothing.
type counter struct{ w io.Writer }

// newCounter returns a counter for a terminal, and one that shows nothing for a file.
func newCounter(f *os.File) counter {
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return counter{}
	}
	return counter{f}
}

const clearLine = "\r\x1b[K"

func (c counter) show(format string, args ...any) {
	if c.w != nil {
		fmt.Fprintf(c.w, clearLine+format, args...)
	}
}

// clear removes the line.
func (c counter) clear() { c.show("") }

// seconds counts the seconds of a step whose progress is unknown. The function that it
// returns ends the count and removes the line.
func (c counter) seconds(step string) (end func()) {
	if c.w == nil {
		return func() {}
	}
	began, done := time.Now(), make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.show("%s: %.0f s", step, time.Since(began).Seconds())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		counting.Wait()
		c.clear()
	}
}
