package stage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
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

// Line is one event in the history of a world. To is the receiver of a call, else "".
type Line struct {
	At                    time.Duration // since the world began
	Who, To, What, Answer string
}

// Add adds a line to the history, if one is kept.
func (s *Stage) Add(who, what, answer string) {
	s.AddCall(who, "", what, answer)
}

// AddCall is Add for a call to a receiver.
func (s *Stage) AddCall(who, to, what, answer string) {
	if s.history != nil {
		*s.history = append(*s.history, Line{s.Now.Sub(s.began), who, to, what, answer})
	}
}

// Record keeps the history in h from now on.
func (s *Stage) Record(h *History) { s.history = h }

// Recording reports whether a history is kept.
func (s *Stage) Recording() bool { return s.history != nil }

// String returns a table for a terminal.
func (h History) String() string {
	t := h.table()
	t.SetStyle(table.StyleLight)
	return t.Render()
}

// Markdown returns a table for a page.
func (h History) Markdown() string { return h.table().RenderMarkdown() }

func (h History) table() table.Writer { //nolint:ireturn // the library's own interface
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"time", "who", "what", "answer"})
	for _, l := range h {
		t.AppendRow(table.Row{l.At, l.Who, l.What, l.Answer})
	}
	return t
}

// Mermaid returns a sequence diagram as text.
func (h History) Mermaid() string {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	var actors []string
	for _, l := range h {
		for _, who := range []string{l.Who, l.To} {
			if who != "" && !slices.Contains(actors, who) {
				actors = append(actors, who)
				fmt.Fprintf(&b, "  participant %s\n", who)
			}
		}
	}
	for _, l := range h {
		switch {
		case l.To == "":
			fmt.Fprintf(&b, "  Note over %s: %s\n", l.Who, escaped(l.What, l.Answer))
		case l.Answer == "":
			fmt.Fprintf(&b, "  %s->>%s: %s\n", l.Who, l.To, escaped(l.What, ""))
		default:
			fmt.Fprintf(&b, "  %s->>%s: %s\n  %s-->>%s: %s\n",
				l.Who, l.To, escaped(l.What, ""), l.To, l.Who, escaped(l.Answer, ""))
		}
	}
	return b.String()
}

// escaped replaces what mermaid reads as syntax: #35; is its entity for a number sign.
func escaped(what, answer string) string {
	if answer != "" {
		what += " (" + answer + ")"
	}
	return strings.NewReplacer(";", ",", "#", "#35;", "\n", " ").Replace(what)
}
