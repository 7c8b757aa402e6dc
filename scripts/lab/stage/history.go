package stage

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Invariant is the number of an invariant of docs/design.md.
type Invariant string

// Violation is a broken invariant.
type Violation struct {
	Invariant Invariant
	Order     string // its id
	Detail    string
}

// String returns the violation in one line, in the form that guards/break parses.
func (v Violation) String() string {
	return fmt.Sprintf("%s broken for order %s: %s", v.Invariant, v.Order, v.Detail)
}

// History is what happened in a world, oldest first.
type History []Line

// Line is one event in the history of a world.
type Line struct {
	At                time.Duration // since the world began
	Who, What, Answer string
}

// Add adds a line to the history, if one is kept.
func (s *Stage) Add(who, what, answer string) {
	if s.history != nil {
		*s.history = append(*s.history, Line{s.Now.Sub(s.began), who, what, answer})
	}
}

// Record keeps the history in h from now on.
func (s *Stage) Record(h *History) { s.history = h }

// Recording reports whether a history is kept.
func (s *Stage) Recording() bool { return s.history != nil }

// String returns a table for a terminal.
func (h History) String() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"time", "who", "what", "answer"})
	for _, l := range h {
		t.AppendRow(table.Row{l.At, l.Who, l.What, l.Answer})
	}
	return t.Render()
}
