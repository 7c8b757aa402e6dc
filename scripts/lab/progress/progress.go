// Package progress prints how far a long run is.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Every returns a function that prints a line to out, at most one in each interval, and
// the first one after an interval. It is safe for concurrent use.
func Every(interval time.Duration, out io.Writer, now func() time.Time) func(format string, args ...any) {
	var mu sync.Mutex
	last := now()
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if t := now(); t.Sub(last) >= interval {
			last = t
			_, _ = fmt.Fprintf(out, format+"\n", args...)
		}
	}
}
