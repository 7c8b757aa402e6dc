package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Replay runs a world again, by its name in a Finding: 42 is the random world of a seed,
// pairs/7/000100 a schedule of the search at place 7 of Deep(2). It returns its history
// and, if an invariant is broken, the shortest finding.
func Replay(name string) (stage.History, *Finding, error) {
	c, choose, err := named(name)
	if err != nil {
		return nil, nil, fmt.Errorf("replay %q: want a seed, or a schedule such as pairs/7/000100", name)
	}
	w := world.NewLab().NewWorld(c, choose).KeepHistory()
	broken := w.Run()
	if broken == nil {
		return w.History(), nil, nil
	}
	f := Shortest(c, w.Tape(), *broken)
	f.Replay = name
	return w.History(), &f, nil
}

func named(name string) (c world.Case, choose stage.Choose, err error) {
	list, schedule, is := strings.Cut(name, "/")
	if !is {
		seed, err := strconv.ParseUint(name, 10, 64)
		if err == nil {
			c, choose = Drawn(seed)
		}
		return c, choose, err
	}
	searches := map[string][]Search{"scenario": Scenarios(), "pairs": Deep(2), "triples": Deep(3)}[list]
	at, hex, _ := strings.Cut(schedule, "/")
	place, err := strconv.Atoi(at)
	var tape []byte
	if err == nil && hex != "" {
		_, err = fmt.Sscanf(hex, "%x", &tape)
	}
	if err != nil || place < 0 || place >= len(searches) {
		return c, nil, fmt.Errorf("no schedule %s", name)
	}
	return searches[place].Case, stage.Tape(tape).Chooser(), nil
}
