package play

import (
	"bytes"
	"os"
	"strings"
	"sync"

	"orderonce/scripts/local/system"
)

// scribe writes the function's log to a file and reads along: nothing personal and no key may stand in it.
type scribe struct {
	file *os.File

	mu    sync.Mutex
	leaks []string
}

func newScribe(path string) (*scribe, error) {
	file, err := os.Create(path) //nolint:gosec // a path of our own
	return &scribe{file: file}, err
}

// Write takes whole lines.
func (s *scribe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range []string{canary, system.PretendKey} {
		if bytes.Contains(p, []byte(secret)) && len(s.leaks) < 10 {
			s.leaks = append(s.leaks, strings.TrimSpace(string(p)))
		}
	}
	return s.file.Write(p)
}

// found are the lines that should not have been written, the first few.
func (s *scribe) found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

// Close closes the file.
func (s *scribe) Close() error { return s.file.Close() }
