package system

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"orderonce/scripts/invariants"
)

// Log keeps what the function prints, and copies it to another writer. It is safe for
// concurrent use.
type Log struct {
	To io.Writer // nil: no copy

	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes whole lines.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.To == nil {
		return len(p), nil
	}
	return l.To.Write(p)
}

// Text returns everything that was printed.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines returns the lines about orders.
func (l *Log) Lines() (all []invariants.Line) {
	for text := range strings.Lines(l.Text()) {
		var line invariants.Line
		if json.Unmarshal([]byte(text), &line) == nil && line.Verdict != "" {
			all = append(all, line)
		}
	}
	return all
}
