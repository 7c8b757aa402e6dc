package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orderonce/scripts/lab/simulation/schedule"
)

// State is how far a run is, so that a long one can be interrupted. Its zero value has
// done nothing and keeps no file.
type State struct {
	path   string
	Report Report
	Done   map[string]bool // searches that are over, by their names and bounds
	Next   uint64          // how many worlds were drawn
	First  uint64          // the first one's seed
}

// LoadState reads a state that was saved at path; no file is a state that has done
// nothing, and "" keeps none.
func LoadState(path string) (*State, error) {
	s := &State{path: path, Done: map[string]bool{}}
	if path == "" {
		return s, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: the caller's own
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("state of a run in %q: %w", path, err)
	}
	return s, nil
}

// save replaces the file as a whole, so that an interruption leaves the old one.
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

// perRound is how many searches or worlds lie between two savings.
const (
	searchesPerRound = 2
	worldsPerRound   = 100_000
)

// Searches runs those that are not done, and returns all that the run has gone through so
// far.
func (s *State) Searches(all []Search, progress func(done int)) (Report, error) {
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
		s.Report.add(Run(left[:n], func(done int) { progress(before + done) }))
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

// Worlds draws worlds until there are n, and returns all that the run has gone through so
// far.
func (s *State) Worlds(seed uint64, n int, progress func(done int)) (Report, error) {
	if s.Next == 0 {
		s.First = seed
	}
	for int(s.Next) < n && s.Report.Worst == nil { //nolint:gosec // G115: not so many
		round, before := n-int(s.Next), int(s.Next) //nolint:gosec // G115: not so many
		if s.path != "" {
			round = min(round, worldsPerRound)
		}
		s.Report.add(Draw{Seed: s.First + s.Next, Worlds: round}.Run(func(done int) { progress(before + done) }))
		s.Next += uint64(round) //nolint:gosec // G115: not negative
		if err := s.save(); err != nil {
			return s.Report, err
		}
	}
	return s.Report, nil
}

// ReplaySchedule tells the story of one schedule, as a Finding names it: pairs/7/000100
// is the search at place 7 of Deep(2).
func ReplaySchedule(kind, name string) (History, *Finding, error) {
	searches := map[string][]Search{"scenario": Scenarios(), "pairs": Deep(2), "triples": Deep(3)}[kind]
	var place int
	var tape []byte
	at, hex, _ := strings.Cut(name, "/")
	_, err := fmt.Sscanf(at, "%d", &place)
	if err == nil && hex != "" {
		_, err = fmt.Sscanf(hex, "%x", &tape)
	}
	if err != nil || place < 0 || place >= len(searches) {
		return nil, nil, fmt.Errorf("replay %s/%s: no such schedule", kind, name)
	}
	l, c := NewLab(), searches[place].Case
	w := l.World(c, schedule.Tape(tape).Chooser()).Tell()
	if broken := w.Run(); broken != nil {
		f := l.Shortest(c, tape, *broken)
		f.Replay = kind + "/" + name
		return w.History(), &f, nil
	}
	return w.History(), nil, nil
}
