// Command steps shows how the handler that everybody writes becomes one that charges an
// order once, in seven steps. docs/build/README.md tells the story.
//
// A step is a handler, in a file of its own. A history is something that happens sooner
// or later. Read step0.go, then histories.go, then the other steps; world.go is the
// stage, and product.go puts the deployed protocol on it. museum.go has double charges of
// public projects.
package main

import (
	"bufio"
	"embed"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// step is a handler, and the history that shows what it lacks.
type step struct {
	title  string
	handle handler
	lacks  string // "": none of the histories
}

func steps() []step {
	return []step{
		{"get, work, put, delete", step0, "twice at once"},
		{"a conditional write", step1, "sent twice"},
		{"the business key", step2, "killed before the charge"},
		{"a lease and a fence", step3, "killed after the charge"},
		{"an idempotency key", step4, "back after a day"},
		{"bind", step5, "500 before the charge"},
		{"classify", step6, "another order, same id"},
		{"park", step7, ""},
	}
}

// table returns the result of each history in each step, and in the product.
func table() string {
	var text strings.Builder
	column := func(s string) { fmt.Fprintf(&text, "%-15s", s) }
	text.WriteString(strings.Repeat(" ", 26))
	for i := range steps() {
		column(fmt.Sprint("step ", i))
	}
	text.WriteString("product\n")
	for _, h := range histories() {
		fmt.Fprintf(&text, "%-26s", h.name)
		for _, s := range steps() {
			column(h.result(h.play(s.handle)))
		}
		text.WriteString(h.result(h.play(product)) + "\n")
	}
	return text.String()
}

//go:embed step*.go
var sources embed.FS

// source returns the code of a step, without its package.
func source(i int) string {
	text, err := sources.ReadFile(fmt.Sprintf("step%d.go", i))
	if err != nil {
		panic(err) // it is embedded
	}
	_, code, _ := strings.Cut(string(text), "\n\n")
	return code
}

// changes returns the lines of a and b, with - before those that only a has, and + before
// those that only b has.
func changes(a, b []string) (lines []string) {
	switch {
	case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
		return append([]string{"  " + a[0]}, changes(a[1:], b[1:])...)
	case len(a) > 0 && !slices.Contains(b, a[0]):
		return append([]string{"- " + a[0]}, changes(a[1:], b)...)
	case len(b) > 0:
		return append([]string{"+ " + b[0]}, changes(a, b[1:])...)
	case len(a) > 0:
		return append([]string{"- " + a[0]}, changes(a[1:], b)...)
	}
	return nil
}

// page returns a step: its code, with the changes since the step before, the history that
// broke the step before, and the one that breaks it.
func page(i int) string {
	s, before := steps()[i], source(max(i-1, 0)) // the first step has no changes
	var text strings.Builder
	fmt.Fprintf(&text, "\n=== Step %d: %s\n\n", i, s.title)
	for _, line := range changes(strings.Split(before, "\n"), strings.Split(source(i), "\n")) {
		fmt.Fprintln(&text, strings.TrimRight(line, " "))
	}
	if i > 0 {
		h := historyNamed(steps()[i-1].lacks)
		fmt.Fprintf(&text, "\n--- %s, which broke step %d:\n\n%s", h.name, i-1, h.transcript(s.handle))
	}
	if s.lacks != "" {
		h := historyNamed(s.lacks)
		fmt.Fprintf(&text, "\n--- %s, which breaks it:\n\n%s", h.name, h.transcript(s.handle))
	}
	return text.String()
}

func main() {
	only := flag.Int("step", -1, "print this step only: 0 to 7")
	all := flag.Bool("table", false, "print the result of each history in each step, and in the product")
	exhibits := flag.Bool("museum", false, "print ten double charges of public projects")
	flag.Parse()
	switch {
	case *exhibits:
		fmt.Print(guide())
	case *all:
		fmt.Print(table())
	case *only >= len(steps()):
		fmt.Fprintf(os.Stderr, "steps: -step %d: want 0 to %d\n", *only, len(steps())-1)
		os.Exit(1)
	case *only >= 0:
		fmt.Print(page(*only))
	default:
		about, err := os.Stdin.Stat()
		walk(func(text string) { fmt.Print(text) }, os.Stdin, err == nil && about.Mode()&os.ModeCharDevice != 0)
	}
}

// walk shows every step. It waits for Enter after each if a person reads it, until the
// end of in.
func walk(show func(text string), in io.Reader, person bool) {
	lines := bufio.NewReader(in)
	for i := range steps() {
		show(page(i))
		if person {
			show("\nEnter: the next step ")
			_, err := lines.ReadString('\n')
			person = err == nil
		}
	}
	show("\n=== Every history in every step, and in the code that is deployed\n\n" + table())
}
