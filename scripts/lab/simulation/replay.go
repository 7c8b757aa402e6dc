package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Replay runs the random world of a seed again. It returns its history and, if an
// invariant is broken, the shortest finding.
func Replay(seed uint64) (stage.History, *report.Finding) {
	c, choose := Drawn(seed)
	return replay(c, choose, strconv.FormatUint(seed, 10))
}

// ReplaySchedule runs a schedule again, by its list and name in a Finding: pairs/7/000100
// is a schedule of the search at place 7 of Deep(2).
func ReplaySchedule(list, name string) (stage.History, *report.Finding, error) {
	searches := map[string][]Search{"scenario": Scenarios(), "pairs": Deep(2), "triples": Deep(3)}[list]
	var place int
	var tape []byte
	at, hex, _ := strings.Cut(name, "/")
	_, err := fmt.Sscanf(at, "%d", &place)
	if err == nil && hex != "" {
		_, err = fmt.Sscanf(hex, "%x", &tape)
	}
	if err != nil || place < 0 || place >= len(searches) {
		return nil, nil, fmt.Errorf("replay %s/%s: no such schedule", list, name)
	}
	h, f := replay(searches[place].Case, stage.Tape(tape).Chooser(), list+"/"+name)
	return h, f, nil
}

func replay(c world.Case, choose stage.Choose, name string) (stage.History, *report.Finding) {
	w := world.NewLab().NewWorld(c, choose).KeepHistory()
	broken := w.Run()
	if broken == nil {
		return w.History(), nil
	}
	f := Shortest(c, w.Tape(), *broken)
	f.Replay = name
	return w.History(), &f
}
