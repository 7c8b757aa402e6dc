package main

import (
	"fmt"
	"slices"
	"strings"
)

// mark stands in a line of code before the operator that is changed.
const mark = "▸"

// because begins the reason of a survivor.
const because = "because: "

// place is where a mutant is and what it changes. It has no line number, so that it stays
// true when other lines come and go.
type place struct {
	File string // from the module's root
	Type string // in gremlins' words, such as CONDITIONALS_BOUNDARY
	Code string // the line without its indentation, with a mark
}

// String is the place in the two lines of the list.
func (p place) String() string { return fmt.Sprintf("%s %s\n\t%s\n", p.File, p.Type, p.Code) }

// survivor is a mutant that no test can kill.
type survivor struct {
	place

	Reason string
}

func listed(known []survivor, p place) bool {
	return slices.ContainsFunc(known, func(s survivor) bool { return s.place == p })
}

// parseSurvivors reads the list: blocks of three lines with an empty line between them,
// and comments that begin with #.
func parseSurvivors(text string) ([]survivor, error) {
	var all []survivor
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var lines []string
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		s, err := parseSurvivor(lines)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, block)
		}
		if listed(all, s.place) {
			return nil, fmt.Errorf("listed twice:\n%s", s.place)
		}
		all = append(all, s)
	}
	return all, nil
}

func parseSurvivor(lines []string) (survivor, error) {
	if len(lines) != 3 {
		return survivor{}, fmt.Errorf("%d lines, want 3: file and type, code, reason", len(lines))
	}
	file, kind, _ := strings.Cut(lines[0], " ")
	s := survivor{place{file, kind, lines[1]}, strings.TrimPrefix(lines[2], because)}
	switch {
	case kind == "":
		return survivor{}, fmt.Errorf("%q is not a file and a type", lines[0])
	case strings.Count(s.Code, mark) != 1:
		return survivor{}, fmt.Errorf("%q has no %s before what is changed", s.Code, mark)
	case s.Reason == "" || !strings.HasPrefix(lines[2], because):
		return survivor{}, fmt.Errorf("%q is not a reason, want %q and the reason", lines[2], because)
	}
	return s, nil
}
