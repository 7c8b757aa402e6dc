package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// State is the progress of a run, so that a long one can be interrupted.
type State struct {
	Report Report
	List   string // of the searches
	Done   int    // how many of them are finished
	Seed   uint64 // of the first random world

	path string
}

// LoadState loads the state that was saved at path. Without a file it returns a state
// without progress; if path is "", that state is never saved.
func LoadState(path string, seed uint64) (*State, error) {
	s := &State{path: path, Seed: seed}
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
	return errors.Join(err, os.MkdirAll(filepath.Dir(s.path), 0o750),
		os.WriteFile(s.path+".new", text, 0o600), os.Rename(s.path+".new", s.path))
}

// The number of searches and of worlds after which the state is saved.
const (
	searchesPerRound = 2
	worldsPerRound   = 100_000
)

// Continue runs the searches that are not done, and then random worlds until so many have
// run. It ends early at a violation. It calls progress with what is done.
func (s *State) Continue(all []Search, worlds int, progress func(format string, args ...any)) error {
	if s.List != "" && s.List != all[0].list {
		return fmt.Errorf("continue the run of %q: it searched %s, not %s", s.path, s.List, all[0].list)
	}
	round := func(left, most int) int {
		if s.path == "" {
			return left
		}
		return min(left, most)
	}
	s.List = all[0].list
	for s.Done < len(all) && s.Report.Worst == nil {
		n := round(len(all)-s.Done, searchesPerRound)
		s.Report.Add(Run(all[s.Done:s.Done+n], func(done int) {
			progress("%d of %d searches", s.Done+done, len(all))
		}))
		s.Done += n
		if err := s.save(); err != nil {
			return err
		}
	}
	for s.Report.Drawn < worlds && s.Report.Worst == nil {
		before := s.Report.Drawn
		next := Draw{
			Seed:   s.Seed + uint64(before), //nolint:gosec // G115: not negative
			Worlds: round(worlds-before, worldsPerRound),
		}
		s.Report.Add(next.Run(func(done int) { progress("%d of %d worlds", before+done, worlds) }))
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}
