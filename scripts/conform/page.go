package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orderonce/scripts/orders/shell"
)

// paging is `conform page`.
type paging struct {
	Reports string   `default:"docs/reference/conformance.json" help:"The reports that the page shows. Default: ${default}."`
	Add     []string `placeholder:"FILE" help:"Add these reports first. One replaces an older one of its service and endpoint, and takes its notes."`
}

// Run prints docs/reference/conformance.md.
func (p paging) Run(_ context.Context, sh shell.Shell) error {
	reports, err := readReports(p.Reports)
	if err != nil {
		return err
	}
	for _, path := range p.Add {
		var added Report
		if err := readJSON(path, &added); err != nil {
			return err
		}
		reports = added.replace(reports)
	}
	if len(p.Add) > 0 {
		lines := make([]string, len(reports))
		for i, r := range reports {
			text, _ := json.Marshal(r) // strings and times
			lines[i] = string(text)
		}
		text := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
		if err := os.WriteFile(filepath.Clean(p.Reports), []byte(text), 0o600); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(sh.Out, page(reports))
	return err
}

// replace returns the reports with this one instead of the older one of its service and
// endpoint. What still looks the same keeps its note.
func (r Report) replace(reports []Report) (all []Report) {
	notes := map[Result]string{}
	for _, old := range reports {
		if old.Service != r.Service || old.Endpoint != r.Endpoint {
			all = append(all, old)
			continue
		}
		for _, result := range old.Results {
			note := result.Note
			result.Note = ""
			notes[result] = note
		}
	}
	for i, result := range r.Results {
		r.Results[i].Note = cmp.Or(result.Note, notes[result])
	}
	return append(all, r)
}

func readReports(path string) (reports []Report, err error) { return reports, readJSON(path, &reports) }

func readJSON(path string, into any) error {
	text, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

//go:embed page.txt
var pageHead string

// page is docs/reference/conformance.md.
func page(reports []Report) string {
	b := &strings.Builder{}
	b.WriteString(pageHead)
	for _, s := range services() {
		own := slices.DeleteFunc(slices.Clone(reports), func(r Report) bool { return r.Service != s.name })
		if !slices.ContainsFunc(own, func(r Report) bool { return r.Endpoint == live }) {
			own = append(own, Report{Endpoint: live})
		}
		s.table(b, own)
		s.differences(b, own)
	}
	return b.String()
}

func (s service) table(b *strings.Builder, reports []Report) {
	fmt.Fprintf(b, "\n## %s\n\n| rule | what it says, and its source | double |", s.title)
	for _, r := range reports {
		fmt.Fprintf(b, " %s |", r.heading())
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(reports)) + "\n")
	for _, rule := range s.rules() {
		_, name, _ := strings.Cut(rule.ID, "/")
		fmt.Fprintf(b, "| %s | %s<br>*%s* | kept |", name, rule.Says, rule.Source)
		for _, r := range reports {
			fmt.Fprintf(b, " %s |", r.cell(rule))
		}
		b.WriteString("\n")
	}
}

func (r Report) heading() string {
	if r.At.IsZero() {
		return r.Endpoint + ", never checked"
	}
	return r.Endpoint + ", " + r.At.Format("2006-01-02")
}

// cell is the outcome of a rule in a table.
func (r Report) cell(rule Rule) string {
	switch is := r.of(rule.ID); {
	case r.Endpoint == live && rule.Offline != "":
		return "cannot be checked"
	case r.At.IsZero():
		return ""
	case is.Outcome == Broken:
		return "**broken**"
	default:
		return string(is.Outcome)
	}
}

// differences lists what was not kept, and why.
func (s service) differences(b *strings.Builder, reports []Report) {
	for _, rule := range s.rules() {
		if rule.Offline != "" {
			fmt.Fprintf(b, "\n- `%s` cannot be checked live: %s.", rule.ID, rule.Offline)
		}
		for _, r := range reports {
			if is := r.of(rule.ID); is.Outcome == Broken {
				fmt.Fprintf(b, "\n- `%s` is broken by %s: %s. %s", rule.ID, r.Endpoint, is.Detail, is.Note)
			}
		}
	}
	b.WriteString("\n")
}
