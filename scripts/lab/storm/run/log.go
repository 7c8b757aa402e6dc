package run

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"

	"orderonce/scripts/local/system"
)

const logName = "function.log"

// functionLog writes the functions' log to a file, collects the lines that contain
// personal data or a key, and counts the orders that were settled without a message.
type functionLog struct {
	file  *os.File
	tally *tally

	mu    sync.Mutex
	leaks []string
}

func newFunctionLog(path string, t *tally) (*functionLog, error) {
	file, err := os.Create(path) //nolint:gosec // G304: our own path
	return &functionLog{file: file, tally: t}, err
}

// Write takes whole lines.
func (s *functionLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, secret := range []string{canary, system.PretendKey} {
		if bytes.Contains(p, []byte(secret)) && len(s.leaks) < 10 {
			s.leaks = append(s.leaks, strings.TrimSpace(string(p)))
		}
	}
	s.tally.add(SettledLater, settledLater(p))
	return s.file.Write(p)
}

// settledLater returns how many orders a webhook, or a run of the function of the
// schedule, has settled according to its line.
func settledLater(line []byte) int {
	var l struct {
		Message, Result string
		Results         struct{ Settled int }
	}
	if !bytes.Contains(line, []byte(`settled`)) || json.Unmarshal(line, &l) != nil {
		return 0
	}
	if l.Message == "webhook" && l.Result == "settled" {
		return 1
	}
	return l.Results.Settled
}

func (s *functionLog) leaked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

// Close closes the file.
func (s *functionLog) Close() error { return s.file.Close() }
