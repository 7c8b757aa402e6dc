package main

import (
	"fmt"
	"slices"
	"strings"
)

// mark precedes the changed operator in a line of code.
const mark = "▸"

// because begins the reason of a survivor.
const because = "because: "

// place identifies a mutant. It has no line number, so that it stays valid when other
// lines change.
type place struct {
	File string // relative to the module's root
	Type string // gremlins' type, such as CONDITIONALS_BOUNDARY
	Code string // the line without its indentation, with a mark
}

// String returns the two lines of the list.
func (p place) String() string { return fmt.Sprintf("%s %s\n\t%s\n", p.File, p.Type, p.Code) }

// survivor is a mutant that no test can kill, with the reason.
type survivor struct {
	place

	Reason string
}

func listed(known []survivor, p place) bool {
	return slices.ContainsFunc(known, func(s survivor) bool { return s.place == p })
}

// parseSurvivors parses the list: blocks of three lines, separated by empty lines, and
// comments that begin with #.
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
			return nil, fmt.Errorf("duplicate survivor:\n%s", s.place)
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
		return survivor{}, fmt.Errorf("%q: want a file and a type", lines[0])
	case strings.Count(s.Code, mark) != 1:
		return survivor{}, fmt.Errorf("%q: no %s before the changed operator", s.Code, mark)
	case s.Reason == "" || !strings.HasPrefix(lines[2], because):
		return survivor{}, fmt.Errorf("%q: want %q and a reason", lines[2], because)
	}
	return s, nil
}
