package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"orderonce/scripts/lab/simulation/report"
)

// State is the progress of a run, so that a long one can be interrupted. The zero value
// has no progress and is not saved.
type State struct {
	path   string
	Report report.Report
	Done   map[string]bool // finished searches, by name and bound
	Next   uint64          // how many random worlds have run
	First  uint64          // the seed of the first one
}

// LoadState loads the state that was saved at path. Without a file it returns a state
// without progress; if path is "", that state is never saved.
func LoadState(path string) (*State, error) {
	s := &State{path: path, Done: map[string]bool{}}
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: the caller's own path
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("load state of a run from %q: %w", path, err)
	}
	return s, nil
}

// save replaces the file atomically, so that an interruption leaves the old one.
func (s *State) save() error {
	if s.path == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}

// The number of searches and of worlds after which the state is saved.
const (
	searchesPerRound = 2
	worldsPerRound   = 100_000
)

// Searches runs the searches that are not done, and returns the report of the whole run
// so far.
func (s *State) Searches(all []Search, progress func(done int)) (report.Report, error) {
	var left []Search
	for place, search := range all {
		search.place = place
		if !s.Done[search.key()] {
			left = append(left, search)
		}
	}
	round := len(left)
	if s.path != "" {
		round = searchesPerRound
	}
	for len(left) > 0 && s.Report.Worst == nil {
		n := min(round, len(left))
		before := len(all) - len(left)
		s.Report.Add(Run(left[:n], func(done int) { progress(before + done) }))
		for _, search := range left[:n] {
			s.Done[search.key()] = true
		}
		left = left[n:]
		if err := s.save(); err != nil {
			return s.Report, err
		}
	}
	return s.Report, nil
}

func (s Search) key() string { return fmt.Sprintf("%s, %d", s.Name, s.Most) }

// Worlds runs random worlds until n have run, and returns the report of the whole run so
// far.
func (s *State) Worlds(seed uint64, n int, progress func(done int)) (report.Report, error) {
	if s.Next == 0 {
		s.First = seed
	}
	for int(s.Next) < n && s.Report.Worst == nil { //nolint:gosec // G115: small enough
		round, before := n-int(s.Next), int(s.Next) //nolint:gosec // G115: small enough
		if s.path != "" {
			round = min(round, worldsPerRound)
		}
		s.Report.Add(Draw{Seed: s.First + s.Next, Worlds: round}.Run(func(done int) { progress(before + done) }))
		s.Next += uint64(round) //nolint:gosec // G115: not negative
		if err := s.save(); err != nil {
			return s.Report, err
		}
	}
	return s.Report, nil
}
