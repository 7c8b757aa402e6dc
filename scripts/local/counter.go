package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// counter shows progress in one line of a terminal, which it overwrites. For a file or a
// pipe it prints a line now and then during a long step, and nothing else.
type counter struct {
	w        io.Writer
	terminal bool
}

// newCounter returns a counter for a terminal, a file or a pipe.
func newCounter(f *os.File) counter {
	info, err := f.Stat()
	return counter{f, err == nil && info.Mode()&os.ModeCharDevice != 0}
}

const clearLine = "\r\x1b[K"

func (c counter) show(format string, args ...any) {
	if c.terminal {
		fmt.Fprintf(c.w, clearLine+format, args...)
	}
}

// clear removes the line.
func (c counter) clear() { c.show("") }

// seconds counts the seconds of a step whose progress is unknown. The function that it
// returns ends the count and removes the line.
func (c counter) seconds(step string) (end func()) {
	every, line := 10*time.Second, "%s: %.0f s\n"
	if c.terminal {
		every, line = time.Second, clearLine+"%s: %.0f s"
	}
	began, done := time.Now(), make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(c.w, line, step, time.Since(began).Seconds())
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
